// SPDX-License-Identifier: GPL-2.0-only
//! Descriptions of events and pages of the ring, as kernels give them and damaged.

use fasttrack_trace::tracefs::{EventFormat, Layout, Missed, Page, Place};
use proptest::collection::vec;
use proptest::prelude::*;

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

const BIO: &str = include_str!("formats/block_bio_queue");
const SYNC: &str = include_str!("formats/ext4_sync_file_exit");
const CHECKPOINT: &str = include_str!("formats/f2fs_write_checkpoint");

fn layout() -> Layout {
    Layout::parse(HEADER_PAGE).expect("a layout")
}

/// A page of these entries; `flags` are the length's upper bits.
fn page(time: u64, flags: u64, entries: &[u32], after: &[u8]) -> Vec<u8> {
    let body: Vec<u8> = entries.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut bytes = time.to_le_bytes().to_vec();
    bytes.extend_from_slice(&(body.len() as u64 | flags).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes.extend_from_slice(after);
    bytes.resize(4096, 0);
    bytes
}

fn head(kind: u32, delta: u32) -> u32 {
    kind | delta << 5
}

/// Times and first words of a page's events.
fn events(bytes: &[u8]) -> Vec<(u64, u32)> {
    let mut page = Page::new(bytes, layout()).expect("a page");
    let mut found = Vec::new();
    while let Some(event) = page.event().expect("whole") {
        let word = event.data[..4].try_into().expect("a word");
        found.push((event.time, u32::from_le_bytes(word)));
    }
    found
}

#[test]
fn the_page_is_laid_out_as_the_kernel_says() {
    let found = layout();
    assert_eq!((found.commit, found.data), (8, 16));
    assert!(Layout::parse("field: u64 timestamp;\toffset:0;").is_none());
}

#[test]
fn events_of_all_lengths() {
    let entries = [
        head(1, 5),
        0xa1,
        // 12 bytes: the length counts its own word.
        head(0, 7),
        12,
        0xa2,
        0,
        // Deleted.
        head(29, 1),
        4,
        head(2, 10),
        0xa3,
        0,
    ];
    let bytes = page(1000, 0, &entries, &[]);
    assert_eq!(events(&bytes), [(1005, 0xa1), (1012, 0xa2), (1023, 0xa3)]);
}

#[test]
fn time_beyond_a_delta() {
    let entries = [
        head(30, 3),
        2,
        head(1, 1),
        0xa1,
        head(31, 9),
        4,
        head(1, 0),
        0xa2,
    ];
    let top = 0x8 << 60;
    let bytes = page(top + 1000, 0, &entries, &[]);
    let extended = top + 1000 + (2 << 27) + 3 + 1;
    let absolute = top + (4 << 27) + 9;
    assert_eq!(events(&bytes), [(extended, 0xa1), (absolute, 0xa2)]);
}

#[test]
fn padding_ends_a_page() {
    let bytes = page(1, 0, &[head(1, 0), 0xa1, head(29, 0), 0, 0, 0], &[]);
    assert_eq!(events(&bytes), [(1, 0xa1)]);
}

#[test]
fn missed_events_are_counted() {
    let entry = [head(1, 0), 0xa1];
    let missed = |flags, after: &[u8]| {
        let bytes = page(1, flags, &entry, after);
        Page::new(&bytes, layout()).expect("a page").missed
    };
    assert_eq!(missed(0, &[]), Missed::None);
    assert_eq!(missed(1 << 31, &[]), Missed::Some);
    let count = 77_u64.to_le_bytes();
    assert_eq!(missed(3 << 30, &count), Missed::Count(77));
}

#[test]
fn a_page_that_is_cut_is_an_error() {
    let bytes = page(1, 0, &[head(3, 0), 0xa1, 0, 0], &[]);
    assert!(Page::new(&bytes[..20], layout()).is_err());
    let torn = page(1, 0, &[head(20, 0), 0xa1], &[]);
    let mut page = Page::new(&torn, layout()).expect("a page");
    assert!(page.event().is_err());
}

#[test]
fn formats_are_read() {
    let bio = EventFormat::parse(BIO).expect("a format");
    assert_eq!(bio.name, "block_bio_queue");
    let mut data = vec![0; 60];
    let put = |data: &mut Vec<u8>, name: &str, bytes: &[u8]| {
        let at = bio.field(name).expect("a field").offset;
        data[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(&mut data, "sector", &123_456_u64.to_le_bytes());
    put(&mut data, "rwbs", b"WSM\0junk");
    put(&mut data, "comm", b"jbd2/sda-8\0");
    assert_eq!(bio.number(&data, "sector"), Some(123_456));
    assert_eq!(bio.text(&data, "rwbs").as_deref(), Some("WSM"));
    assert_eq!(bio.text(&data, "comm").as_deref(), Some("jbd2/sda-8"));
    assert_eq!(bio.number(&data, "nothing"), None);
    assert_eq!(bio.number(&data[..9], "sector"), None);
}

#[test]
fn numbers_that_are_negative() {
    let sync = EventFormat::parse(SYNC).expect("a format");
    let at = sync.field("ret").expect("a field").offset;
    let mut data = vec![0; 40];
    data[at..at + 4].copy_from_slice(&(-5_i32).to_le_bytes());
    assert_eq!(sync.number(&data, "ret").map(|ret| ret as i64), Some(-5));
}

#[test]
fn texts_beside_the_event() {
    let checkpoint = EventFormat::parse(CHECKPOINT).expect("a format");
    let field = checkpoint.field("dest_msg").expect("a field");
    assert_eq!(field.place, Place::DataLoc);
    let mut data = vec![0; field.offset];
    let begin = data.len() + 4;
    data.extend_from_slice(&((10 << 16 | begin) as u32).to_le_bytes());
    data.extend_from_slice(b"start ops\0");
    assert_eq!(
        checkpoint.text(&data, "dest_msg").as_deref(),
        Some("start ops")
    );
    data.truncate(begin + 3);
    assert_eq!(checkpoint.text(&data, "dest_msg"), None);
}

#[test]
fn formats_that_are_none() {
    for text in ["", "name: x\n", "name: x\nID: y\n", "name: x\nID: 3\n"] {
        assert!(EventFormat::parse(text).is_err(), "{text:?}");
    }
    let no_size = "name: x\nID: 3\nformat:\n\tfield:int a;\toffset:0;\n";
    assert!(EventFormat::parse(no_size).is_err());
}

/// What fails is kept in device/fuzz/corpus/ring, as of pages.
#[test]
fn spoilt_formats_are_no_panic() {
    let good = [BIO, SYNC, CHECKPOINT].map(|text| text.as_bytes().to_vec());
    let data: Vec<u8> = (0..80).collect();
    fasttrack_fuzz::mutate_all(&good, |bytes| {
        if let Ok(format) = EventFormat::parse(&String::from_utf8_lossy(bytes)) {
            for field in &format.fields {
                let _ = format.number(&data, &field.name);
                let _ = format.text(&data, &field.name);
            }
        }
        if let Some(layout) = Layout::parse(&String::from_utf8_lossy(bytes)) {
            let _ = Page::new(&data, layout);
        }
    });
}

#[test]
fn spoilt_pages_are_no_panic() {
    let words = [
        head(2, 5),
        7,
        8,
        head(30, 9),
        1,
        head(0, 3),
        8,
        9,
        head(1, 2),
        6,
    ];
    let good = [0, 1 << 31, 3 << 30].map(|flags| page(1, flags, &words, &77_u64.to_le_bytes()));
    fasttrack_fuzz::mutate_all(&good, |bytes| {
        if let Ok(mut page) = Page::new(bytes, layout()) {
            let mut sum = 0;
            while let Ok(Some(event)) = page.event() {
                sum += event.data.len();
            }
            assert!(sum <= bytes.len());
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_page_is_no_panic(bytes in vec(any::<u8>(), 0..200), flags in 0..4_u64) {
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        for bytes in [bytes, page(1, flags << 30, &words, &[])] {
            if let Ok(mut page) = Page::new(&bytes, layout()) {
                while let Ok(Some(event)) = page.event() {
                    prop_assert!(event.data.len() <= 4096);
                }
            }
        }
    }

    #[test]
    fn any_format_is_no_panic(cut in 0..600_usize, with in "[ -~\t\n]{0,40}", data in vec(any::<u8>(), 0..80)) {
        let text: String = BIO.chars().take(cut).chain(with.chars()).chain(BIO.chars().skip(cut)).collect();
        if let Ok(format) = EventFormat::parse(&text) {
            for field in &format.fields {
                let _ = format.number(&data, &field.name);
                let _ = format.text(&data, &field.name);
            }
        }
    }
}
