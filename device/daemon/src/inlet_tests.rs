// SPDX-License-Identifier: GPL-2.0-only
use super::*;
use fasttrack_detector::SessionKey;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use zbus::message::Flags;
use zbus::zvariant::Fd;
use zbus::Message;

const NOW: Duration = Duration::from_secs(100);
const LIMITS: Reports = Reports {
    per_second: 50,
    burst: 200,
};

fn sieve() -> Sieve {
    Sieve::new(Gate::new(&LIMITS, Agents::default()))
}

fn call(sender: &str, wants_reply: bool, text: &str) -> Vec<u8> {
    let call = Message::method_call("/org/fasttrack1", "Report").expect("a path");
    let call = call.sender(sender).expect("a name");
    let call = match wants_reply {
        true => call,
        false => call.with_flags(Flags::NoReplyExpected).expect("a flag"),
    };
    let message = call.build(&text).expect("a message");
    message.data().bytes().to_vec()
}

fn signal() -> Vec<u8> {
    let signal = Message::signal("/a", "a.B", "C").expect("names");
    signal.build(&1).expect("a message").data().bytes().to_vec()
}

fn all(sieve: &mut Sieve) -> Vec<u8> {
    let mut all = Vec::new();
    let mut room = [0; 7];
    while let Some((count, _)) = sieve.take(&mut room) {
        all.extend(&room[..count]);
    }
    all
}

#[test]
fn calls_without_answers_are_dropped_and_the_rest_is_handed_on_as_it_came() {
    let parts = [
        b"OK 0123\r\nAGREE_UNIX_FD\r\n".to_vec(),
        signal(),
        call(":1.1", false, "dropped"),
        call(":1.1", true, "kept"),
        call(":1.2", false, "dropped, too"),
        signal(),
    ];
    let bytes = parts.concat();
    let kept = [&parts[0][..], &parts[1], &parts[3], &parts[5]].concat();
    for step in [1, 2, 3, 16, 17, 100, bytes.len()] {
        let mut sieve = sieve();
        for chunk in bytes.chunks(step) {
            sieve.put(chunk, Vec::new(), NOW);
        }
        assert_eq!(all(&mut sieve), kept, "in steps of {step}");
        assert_eq!((sieve.dropped, sieve.begun.len(), sieve.skip), (2, 0, 0));
    }
}

#[test]
fn what_is_too_long_is_dropped_without_being_held() {
    let long = call(":1.1", true, &"x".repeat(1 << 20));
    let (mut sieve, signal) = (sieve(), signal());
    for chunk in [&long[..], &signal].concat().chunks(1000) {
        sieve.put(chunk, Vec::new(), NOW);
        assert!(sieve.begun.len() < CALL_MOST);
    }
    assert_eq!((all(&mut sieve), sieve.dropped), (signal, 1));
}

#[test]
fn a_sender_has_a_share_and_all_strangers_have_one_together() {
    let mut sieve = sieve();
    let session = SessionKey {
        user: 1000,
        seat: "seat0".to_string(),
        id: "1".to_string(),
    };
    sieve.gate.agents.hears(&session, ":1.7");
    let mut flood = |name: &str| {
        (0..1000).for_each(|_| sieve.put(&call(name, true, ""), Vec::new(), NOW));
        let kept = sieve.kept.len();
        sieve.kept.clear();
        kept
    };
    let share = (LIMITS.burst * OVER_REPORTS) as usize;
    assert_eq!(flood(":1.1"), share);
    assert_eq!(flood(":1.1"), 0);
    let others: usize = (10..40).map(|number| flood(&format!(":1.{number}"))).sum();
    assert_eq!(share + others, STRANGERS.1 as usize);
    assert_eq!(flood(":1.7"), share, "an agent");
}

#[test]
fn descriptors_stay_with_their_message() {
    let open = || OwnedFd::from(std::fs::File::open("/dev/null").expect("a file"));
    let (kept, dropped) = (call(":1.1", true, "kept"), call(":1.1", false, "dropped"));
    let mut sieve = sieve();
    let (first, second) = (open(), open());
    let numbers = [first.as_raw_fd(), second.as_raw_fd()];
    // One message and half of another, whose descriptor comes with its first half.
    sieve.put(&[&signal()[..], &kept[..20]].concat(), vec![first], NOW);
    sieve.put(&kept[20..], Vec::new(), NOW);
    sieve.put(&[&signal()[..], &dropped].concat(), vec![open()], NOW);
    sieve.put(&[&dropped[..], &kept].concat(), vec![second], NOW);
    let mut room = vec![0; 4096];
    let mut seen = Vec::new();
    while let Some((_, fds)) = sieve.take(&mut room) {
        seen.push(fds.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>());
    }
    let none = Vec::new();
    assert_eq!(
        seen,
        [none.clone(), vec![numbers[0]], none, vec![numbers[1]]]
    );
}

#[test]
fn a_call_that_brings_descriptors_is_dropped_and_they_are_closed() {
    let (mut here, there) = UnixStream::pair().expect("sockets");
    here.set_nonblocking(true).expect("a flag");
    let call = Message::method_call("/org/fasttrack1", "Report").expect("a path");
    let call = call.sender(":1.1").expect("a name");
    let call = call.build(&Fd::from(&there)).expect("a message");
    let bytes = call.data().bytes();
    for at in [20, bytes.len()] {
        let (mut sieve, brought) = (sieve(), there.try_clone().expect("a descriptor"));
        sieve.put(&bytes[..at], vec![brought.into()], NOW);
        sieve.put(&bytes[at..], Vec::new(), NOW);
        assert_eq!((all(&mut sieve), sieve.dropped), (Vec::new(), 1), "{at}");
        assert!(sieve.begun_fds.is_empty());
    }
    drop((call, there));
    // The other end is closed as soon as nobody has it any more.
    assert_eq!(here.read(&mut [0]).expect("the end"), 0);
}

#[test]
fn long_calls_use_up_a_share_sooner() {
    let mut sieve = sieve();
    let long = call(":1.1", true, &"x".repeat(60 << 10));
    let mut flood = |senders: u32| {
        for number in 0..senders {
            let long = call(&format!(":1.{number}"), true, &"x".repeat(60 << 10));
            (0..100).for_each(|_| sieve.put(&long, Vec::new(), NOW));
        }
        let kept = sieve.kept.len();
        sieve.kept.clear();
        kept * long.len()
    };
    let share = (LIMITS.burst * OVER_REPORTS * CALL_MEAN) as usize;
    let one = flood(1);
    assert!(one > share / 2 && one <= share, "{one}");
    let all = one + flood(20);
    let strangers = (STRANGERS.1 * CALL_MEAN) as usize;
    assert!(all > strangers / 2 && all <= strangers, "{all}");
}

#[test]
fn the_longest_call_is_taken_whatever_the_limits_are() {
    let limits = Reports {
        per_second: 1,
        burst: 1,
    };
    let mut sieve = Sieve::new(Gate::new(&limits, Agents::default()));
    let long = call(":1.1", true, &"x".repeat(CALL_MOST - 200));
    sieve.put(&long, Vec::new(), NOW);
    assert_eq!(all(&mut sieve), long);
}

#[test]
fn senders_are_forgotten_before_they_fill_memory() {
    let mut sieve = sieve();
    for number in 0..10 * SENDERS_MOST {
        sieve.put(&call(&format!(":1.{number}"), true, ""), Vec::new(), NOW);
        assert!(sieve.gate.senders.len() <= SENDERS_MOST);
    }
}

#[test]
fn whatever_comes_in_whatever_pieces_is_handed_on_or_counted_and_never_held_for_long() {
    let good = [
        signal(),
        call(":1.1", true, "a"),
        call(":1.2", false, "b"),
        signal(),
    ]
    .concat();
    fasttrack_fuzz::mutate(&good, |bytes| {
        let mut sieve = sieve();
        let step = 1 + bytes.len() % 61;
        bytes
            .chunks(step)
            .for_each(|chunk| sieve.put(chunk, Vec::new(), NOW));
        assert!(sieve.begun.len() <= bytes.len().min(CALL_MOST + step));
        let handed_on = all(&mut sieve);
        assert!(handed_on.len() + sieve.begun.len() <= bytes.len());
        if sieve.dropped == 0 {
            assert_eq!(handed_on, bytes[..bytes.len() - sieve.begun.len()]);
        }
    });
}
