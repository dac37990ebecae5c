// SPDX-License-Identifier: GPL-2.0-only
//! Machines with their block devices, as sysfs shows them.

use super::*;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// A machine.
struct Machine(TempDir);

impl Machine {
    fn new(mounts: &str) -> Machine {
        let machine = Machine(tempfile::tempdir().expect("a folder"));
        machine.put("proc/1/mountinfo", mounts);
        machine.put(
            "etc/passwd",
            "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n",
        );
        machine
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }

    fn link(&self, at: &str, to: &str) {
        let (at, to) = (self.0.path().join(at), self.0.path().join(to));
        fs::create_dir_all(at.parent().expect("a folder")).expect("folders");
        symlink(to, at).expect("a link");
    }

    /// A block device, its directory below `sys/devices`, with what it lies on.
    fn device(
        self,
        folder: &str,
        number: &str,
        scheduler: Option<&str>,
        below: &[&str],
    ) -> Machine {
        let name = folder.rsplit('/').next().expect("a name").to_string();
        let place = format!("sys/devices/{folder}");
        self.put(&format!("{place}/dev"), number);
        if let Some(scheduler) = scheduler {
            self.put(&format!("{place}/queue/scheduler"), scheduler);
        }
        if folder.contains('/') {
            self.put(&format!("{place}/partition"), "1");
        }
        for one in below {
            let slave = one.rsplit('/').next().expect("a name");
            self.link(
                &format!("{place}/slaves/{slave}"),
                &format!("sys/devices/{one}"),
            );
        }
        self.link(&format!("sys/dev/block/{number}"), &place);
        self.link(&format!("sys/class/block/{name}"), &place);
        self
    }

    fn system(&self) -> System {
        System::new(self.0.path())
    }

    fn under(&self, path: &str) -> String {
        list(&Mounts::new(&self.system()).under(path))
    }
}

#[test]
fn partitions_mappers_and_raids_lead_to_the_disks() {
    let mounts = "21 1 253:1 / / rw - ext4 /dev/mapper/vg-root rw\n\
        22 21 9:0 / /home rw,relatime shared:1 - ext4 /dev/md0 rw\n\
        23 21 259:2 / /boot rw - ext4 /dev/nvme0n1p2 rw\n";
    let machine = Machine::new(mounts)
        .device("nvme0n1", "259:0", Some("[none] mq-deadline"), &[])
        .device("nvme0n1/nvme0n1p2", "259:2", None, &[])
        .device("nvme0n1/nvme0n1p3", "259:3", None, &[])
        .device("dm-0", "253:0", None, &["nvme0n1/nvme0n1p3"])
        .device("dm-1", "253:1", None, &["dm-0"])
        .device("sda", "8:0", Some("mq-deadline [bfq] none"), &[])
        .device("sda/sda1", "8:1", None, &[])
        .device("sdb", "8:16", Some("[mq-deadline] none"), &[])
        .device("md0", "9:0", None, &["sda/sda1", "sdb"]);
    assert_eq!(machine.under("/usr/bin"), "nvme0n1: none");
    assert_eq!(machine.under("/boot"), "nvme0n1: none");
    assert_eq!(machine.under("/home/ann"), "sda: bfq, sdb: mq-deadline");
    let of_ann = Mounts::new(&machine.system()).of_apps(Some(1000));
    assert_eq!(list(&of_ann), "nvme0n1: none, sda: bfq, sdb: mq-deadline");
    let of_root = Mounts::new(&machine.system()).of_apps(Some(0));
    assert_eq!(list(&of_root), "nvme0n1: none");
}

#[test]
fn a_file_system_with_numbers_of_its_own_names_its_devices() {
    let mounts = "21 1 0:30 /@ / rw - btrfs /dev/mapper/luks\\0401 rw,subvol=/@\n\
        22 21 0:31 / /srv rw - bcachefs /dev/sda:/dev/sdc rw\n\
        23 21 0:40 / /net rw - nfs4 server:/home rw\n";
    let machine = Machine::new(mounts)
        .device("sda", "8:0", Some("[bfq]"), &[])
        .device("sdb", "8:16", Some("[none]"), &[])
        .device("sdc", "8:32", None, &[])
        .device("dm-0", "253:0", None, &["sda"]);
    machine.put("sys/devices/dm-0/dm/name", "luks 1\n");
    for device in ["dm-0", "sdb"] {
        let at = format!("sys/fs/btrfs/an-id/devices/{device}");
        machine.link(&at, &format!("sys/devices/{device}"));
    }
    assert_eq!(machine.under("/home"), "sda: bfq, sdb: none");
    assert_eq!(machine.under("/srv"), "sda: bfq, sdc: none");
    assert_eq!(machine.under("/net/ann"), "no disk");
}

#[test]
fn overlays_and_loop_devices_lead_to_what_they_lie_on() {
    let mounts = "21 1 8:0 / / rw - ext4 /dev/sda rw\n\
        22 21 0:50 / /usr rw - overlay overlay rw,lowerdir=/base:/more,upperdir=/top/up,workdir=/top/w\n\
        23 21 7:0 / /base ro - squashfs /dev/loop0 ro\n\
        24 21 8:16 / /top rw - ext4 /dev/sdb rw\n\
        25 21 0:51 / /odd rw - overlay overlay rw,lowerdir=/odd/below\n";
    let machine = Machine::new(mounts)
        .device("sda", "8:0", Some("[bfq]"), &[])
        .device("sdb", "8:16", Some("[none]"), &[])
        .device("loop0", "7:0", Some("[none] bfq"), &[]);
    machine.put("sys/devices/loop0/loop/backing_file", "/images/base.img\n");
    assert_eq!(machine.under("/usr/bin"), "sda: bfq, sdb: none");
    assert_eq!(machine.under("/base"), "sda: bfq");
    assert_eq!(
        machine.under("/odd"),
        "no disk",
        "an overlay of itself ends"
    );
}

#[test]
fn layers_that_lead_back_to_their_overlay_are_followed_once() {
    let layers: Vec<String> = (0..60).map(|layer| format!("/a/{layer}")).collect();
    let layers = layers.join(":");
    let mut mounts = "21 1 8:0 / / rw - ext4 /dev/sda rw\n".to_string();
    for (number, place) in [(22, "/a"), (23, "/b")] {
        mounts += &format!(
            "{number} 21 0:{number} / {place} rw - overlay overlay rw,lowerdir=/b/1:/b/2:{layers},upperdir=/top\n"
        );
    }
    let machine = Machine::new(&mounts).device("sda", "8:0", Some("[bfq]"), &[]);
    let (to, found) = std::sync::mpsc::channel();
    std::thread::spawn(move || to.send(["/a", "/b/home"].map(|path| machine.under(path))));
    let found = found.recv_timeout(std::time::Duration::from_secs(10));
    assert_eq!(found.expect("it ends"), ["sda: bfq", "sda: bfq"]);
}

#[test]
fn nobody_looks_at_a_path_of_a_server() {
    let root = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n";
    let machine = |kind: &str| {
        let served = format!("2 1 0:50 / /srv rw - {kind} server:/srv rw\n");
        let machine = Machine::new(&format!("{root}{served}"));
        // Whoever looks comes to the disk.
        machine.link("srv/ann", "home/ann");
        fs::create_dir_all(machine.0.path().join("home/ann")).expect("a home");
        machine
            .device("sda", "8:0", Some("[bfq] none"), &[])
            .device("sda/sda1", "8:1", None, &[])
    };
    for kind in ["nfs4", "cifs", "autofs", "fuse.sshfs"] {
        assert_eq!(machine(kind).under("/srv/ann"), "no disk", "{kind}");
    }
    assert_eq!(machine("tmpfs").under("/srv/ann"), "sda: bfq");
}

#[test]
fn the_later_mount_hides_the_earlier_and_links_are_followed() {
    let mounts = "21 1 8:0 / / rw - ext4 /dev/sda rw\n\
        22 21 8:0 / /var/home rw - ext4 /dev/sda rw\n\
        23 22 8:16 / /var/home rw - ext4 /dev/sdb rw\n";
    let machine = Machine::new(mounts)
        .device("sda", "8:0", Some("[bfq]"), &[])
        .device("sdb", "8:16", Some("[none]"), &[]);
    machine.put("var/home/.here", "");
    machine.link("home", "var/home");
    assert_eq!(machine.under("/home/ann"), "sdb: none");
    assert_eq!(machine.under("/homes"), "sda: bfq");
}

#[test]
fn no_text_makes_it_panic() {
    let good = "21 1 0:30 /@ /a\\040b rw - overlay x rw,lowerdir=/a:/b,upperdir=/c\n";
    fasttrack_fuzz::mutate(good.as_bytes(), |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for mount in text.lines().filter_map(mount) {
            let _ = layers(&mount.options).count();
        }
    });
}
