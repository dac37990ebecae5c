# SPDX-License-Identifier: GPL-2.0-only
"""Lines of a console log that must not be there: each with its kind, and with a sample that the tests find by it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class BadLine:
    """One pattern. A kind may have several."""

    kind: str
    pattern: str
    sample: str

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return re.compile(self.pattern)

    def matches(self, line: str) -> bool:
        """Whether a line has it."""
        return self.expression.search(line) is not None


# The first row that matches gives a line its kind. Most reports of the lock checker and of the sanitizers begin with
# WARNING: or BUG:, which are therefore last.
BAD_LINES = (
    BadLine(
        "panic",
        r"Kernel panic",
        "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
    ),
    BadLine(
        "oops",
        r"\bOops\b",
        "Oops: 0002 [#1] PREEMPT SMP NOPTI",
    ),
    BadLine(
        "oops",
        r"general protection fault",
        "traps: fio[41] general protection fault ip:7f1c2a3b ip:7ffd10 error:0 in libc.so.6[7f1c2000+155000]",
    ),
    BadLine(
        "oops",
        r"Unable to handle kernel",
        "Unable to handle kernel paging request at virtual address ffff8000deadbeef",
    ),
    BadLine(
        "oops",
        r"Kernel tried to access user memory",
        "Kernel tried to access user memory at addr 0x40001000, ip 0x600b2f4c",
    ),
    BadLine(
        "hung task",
        r"blocked for more than \d+ seconds",
        "INFO: task jbd2/sda-8:31 blocked for more than 122 seconds.",
    ),
    BadLine(
        "stall",
        r"INFO: rcu.*stall",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    ),
    BadLine(
        "stall",
        r"soft lockup",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [kworker/0:1:12]",
    ),
    BadLine(
        "stall",
        r"hard LOCKUP",
        "watchdog: Watchdog detected hard LOCKUP on cpu 1",
    ),
    BadLine(
        "out of memory",
        r"Out of memory:",
        "Out of memory: Killed process 21 (fio) total-vm:120744kB, anon-rss:108928kB, file-rss:60kB, shmem-rss:0kB",
    ),
    BadLine(
        "out of memory",
        r"invoked oom-killer",
        "fio invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0",
    ),
    BadLine(
        "out of memory",
        r"oom-kill:",
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,task_memcg=/,task=fio,pid=21,uid=0",
    ),
    BadLine(
        "page allocation failure",
        r"page allocation failure",
        "kworker/0:1: page allocation failure: order:4, mode:0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO)",
    ),
    BadLine(
        "I/O error",
        r"I/O error",
        "Buffer I/O error on dev sda, logical block 3, lost sync page write",
    ),
    BadLine(
        "I/O error",
        r"critical medium error",
        "critical medium error, dev sda, sector 2048 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 0",
    ),
    BadLine(
        "I/O error",
        r"critical target error",
        "critical target error, dev sda, sector 4096 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 0",
    ),
    BadLine(
        "ext4 error",
        r"EXT4-fs error",
        "EXT4-fs error (device sda): ext4_lookup:1813: inode #2: comm ls: deleted inode referenced: 12",
    ),
    BadLine(
        "ext4 error",
        r"EXT4-fs warning",
        "EXT4-fs warning (device sda): ext4_dirblock_csum_verify:406: inode #2: No space for directory leaf checksum",
    ),
    BadLine(
        "ext4 error",
        r"EXT4-fs \(.*\): error",
        "EXT4-fs (sda): error loading journal",
    ),
    BadLine(
        "ext4 error",
        r"EXT4-fs \(.*\): warning",
        "EXT4-fs (sda): warning: mounting fs with errors, running e2fsck is recommended",
    ),
    BadLine(
        "ext4 error",
        r"JBD2: .*[Ee]rror",
        "JBD2: Detected IO errors while flushing file data on sda-8",
    ),
    BadLine(
        "ext4 error",
        r"Remounting filesystem read-only",
        "EXT4-fs (sda): Remounting filesystem read-only",
    ),
    # Of f2fs, all but what it says of a good mount, and of what it finds after a power cut; there the newer of the
    # two checkpoints may lack its last block ("invalid crc").
    BadLine(
        "f2fs error",
        r"F2FS-fs (?!\([^)]*\): (Mounted with |Found nat_bits in |checkpoint: version = |recover_inode: "
        r"|recover_(data|dentry): .*err = 0$|invalid crc_offset: \d+$|invalid crc value$))",
        "F2FS-fs (sda): inconsistent node block, nid:4, node_footer[nid:0,ino:0,ofs:0,cpver:0,blkaddr:0]",
    ),
    BadLine(
        "lock order",
        r"possible circular locking",
        "WARNING: possible circular locking dependency detected",
    ),
    BadLine(
        "lock order",
        r"possible recursive locking",
        "WARNING: possible recursive locking detected",
    ),
    BadLine(
        "lock order",
        r"inconsistent lock state",
        "WARNING: inconsistent lock state",
    ),
    BadLine(
        "lock order",
        r"suspicious RCU usage",
        "WARNING: suspicious RCU usage",
    ),
    BadLine(
        "lock order",
        r"held lock freed",
        "WARNING: held lock freed!",
    ),
    BadLine(
        "lock misuse",
        r"INFO: trying to register non-static key",
        "INFO: trying to register non-static key.",
    ),
    BadLine(
        "lock misuse",
        r"DEADLOCK",
        " *** DEADLOCK ***",
    ),
    BadLine(
        "lock misuse",
        r"scheduling while atomic",
        "BUG: scheduling while atomic: kworker/0:1/12/0x00000002",
    ),
    BadLine(
        "lock misuse",
        r"sleeping function called from invalid context",
        "BUG: sleeping function called from invalid context at mm/page_alloc.c:4770",
    ),
    BadLine(
        "sanitizer report",
        r"KASAN:",
        "BUG: KASAN: slab-use-after-free in fti_dispatch+0x1f0/0x3a0",
    ),
    BadLine(
        "sanitizer report",
        r"KCSAN:",
        "BUG: KCSAN: data-race in fti_dispatch / fti_insert",
    ),
    BadLine(
        "sanitizer report",
        r"UBSAN:",
        "UBSAN: shift out of bounds in block/fasttrack-iosched.c:412:9",
    ),
    BadLine(
        "sanitizer report",
        r"kmemleak:.*leak",
        "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    ),
    BadLine(
        "error in the guest program",
        r"^fasttrack-guest: the guest program failed",
        "fasttrack-guest: the guest program failed: panicked at src/player.rs:120:9:",
    ),
    BadLine(
        "error in a script that is the guest's init",
        r"^fasttrack-guest: error",
        "fasttrack-guest: error: NameError: name 'mount_cgroup' is not defined",
    ),
    BadLine(
        "error in the emulated storage",
        r"mflash: .*: error -\d+",
        "mflash: no storage: error -12",
    ),
    BadLine(
        "error in the emulated storage",
        r"mflash: .*: not ",
        "mflash: phone=n9: not one of n5 n6 s6 p1 ufs31 ufs40",
    ),
    BadLine(
        "error in the emulated storage",
        r"mflash: mem: ",
        "mflash: mem: 1048576 bytes are reserved, the tables alone need 8388608",
    ),
    BadLine(
        "error in the emulated storage",
        r"mflash: image .*: only a UML kernel",
        "mflash: image /run/disk: only a UML kernel with mflash built in has images",
    ),
    BadLine(
        "error in the emulated storage",
        r"mflash: the storage was made for phone (?!kunit,)",
        "mflash: the storage was made for phone n6, 4096 pages, version 3; this is s6, 8192 pages, version 3: "
        "remove it, or ask for that phone",
    ),
    BadLine(
        "guest process crashed",
        r"segfault at",
        "fio[41]: segfault at 8 ip 000000004012a3b0 sp 000000007ffd1000 error 4 in fio[40100000+f2000]",
    ),
    BadLine(
        "guest process crashed",
        r"userspace - .* failed",
        "userspace - ptrace continue failed, op = 7, errno = 3",
    ),
    BadLine(
        "kernel bug",
        r"kernel BUG at",
        "kernel BUG at fs/ext4/inode.c:2731!",
    ),
    BadLine(
        "kernel bug",
        r"\bBUG: ",
        "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    ),
    BadLine(
        "kernel warning",
        r"\bWARNING: ",
        "WARNING: CPU: 0 PID: 12 at mm/page_alloc.c:3122 get_page_from_freelist+0x1/0x2",
    ),
)


def kind_of(line: str) -> str | None:
    """The kind of a line that must not be there; None of any other."""
    return next((row.kind for row in BAD_LINES if row.matches(line)), None)
