use super::*;

const BLOCK: u32 = 4;

fn write(offset: u64, data: &[u8]) -> DiskOp {
    DiskOp::Write { offset, data: data.to_vec().into(), durable: false }
}

/// Returns the errors of a disk that holds `held` after a crash.
fn wrong(shadow: &ShadowDisk, held: &[u8]) -> Vec<(u64, Wrong)> {
    let report = shadow.check(reader(held));
    assert_eq!(report.bytes_wrong > 0, !report.is_clean());
    report.first.iter().map(|wrong| (wrong.block, wrong.wrong)).collect()
}

fn reader(held: &[u8]) -> impl FnMut(u64, &mut [u8]) + '_ {
    |offset, out| {
        out.copy_from_slice(&held[offset as usize..][..out.len()]);
    }
}

fn is_allowed(shadow: &ShadowDisk, held: &[u8]) -> bool {
    wrong(shadow, held).is_empty()
}

#[test]
fn each_block_is_old_or_new_independently() {
    let mut shadow = ShadowDisk::new(8, BLOCK);
    shadow.write(2, b"abcd");
    for held in [b"\0\0\0\0\0\0\0\0", b"\0\0ab\0\0\0\0", b"\0\0\0\0cd\0\0", b"\0\0abcd\0\0"] {
        assert!(is_allowed(&shadow, held));
    }
    assert_eq!(wrong(&shadow, b"\0\0a\0cd\0\0"), [(0, Wrong::Torn)]);
    assert_eq!(wrong(&shadow, b"\0\0abxd\0\0"), [(1, Wrong::Foreign)]);
}

#[test]
fn flushed_data_stays() {
    let mut shadow = ShadowDisk::new(8, BLOCK);
    shadow.write(0, b"aaaa");
    let flush = shadow.flush_begun();
    shadow.write(0, b"bbbb");
    shadow.flush_done(flush);
    assert_eq!(wrong(&shadow, b"\0\0\0\0\0\0\0\0"), [(0, Wrong::Stale)]);
    assert!(is_allowed(&shadow, b"aaaa\0\0\0\0"));
    assert!(is_allowed(&shadow, b"bbbb\0\0\0\0"));
    assert_eq!(wrong(&shadow, b"aabb\0\0\0\0"), [(0, Wrong::Torn)]);
    assert_eq!(wrong(&shadow, b"aaaa\0\0\0x"), [(1, Wrong::Foreign)]);
}

#[test]
fn a_flush_without_an_answer_promises_nothing() {
    let mut shadow = ShadowDisk::new(4, BLOCK);
    shadow.write(0, b"aaaa");
    let _unanswered = shadow.flush_begun();
    assert!(is_allowed(&shadow, b"\0\0\0\0") && is_allowed(&shadow, b"aaaa"));
}

#[test]
fn a_durable_request_makes_itself_and_earlier_requests_durable() {
    let mut shadow = ShadowDisk::new(12, BLOCK);
    shadow.write(0, b"aaaa");
    let durable =
        shadow.submit(&DiskOp::Write { offset: 4, data: b"bbbb".to_vec().into(), durable: true });
    shadow.write(8, b"cccc");
    shadow.answered(durable);
    assert!(is_allowed(&shadow, b"aaaabbbb\0\0\0\0"));
    assert!(is_allowed(&shadow, b"aaaabbbbcccc"));
    let lost = [(0, Wrong::Stale), (1, Wrong::Stale)];
    assert_eq!(wrong(&shadow, b"\0\0\0\0\0\0\0\0cccc"), lost);
}

#[test]
fn requests_in_flight_together_are_served_in_any_order_or_not() {
    let mut shadow = ShadowDisk::new(4, BLOCK);
    let one = shadow.submit(&write(0, b"aaa"));
    let two = shadow.submit(&write(1, b"bbb"));
    for held in [b"\0\0\0\0", b"aaa\0", b"\0bbb", b"abbb", b"aaab"] {
        assert!(is_allowed(&shadow, held), "{held:?}");
    }
    assert!(!is_allowed(&shadow, b"abab"));
    shadow.answered(one);
    shadow.answered(two);
    let flush = shadow.flush_begun();
    shadow.flush_done(flush);
    assert!(is_allowed(&shadow, b"abbb") && is_allowed(&shadow, b"aaab"));
    assert_eq!(wrong(&shadow, b"\0bbb"), [(0, Wrong::Stale)]);
    shadow.write(0, b"cccc");
    assert!(is_allowed(&shadow, b"aaab") && is_allowed(&shadow, b"cccc"));
}

#[test]
fn a_flush_does_not_pin_requests_in_flight_with_it() {
    let mut shadow = ShadowDisk::new(4, BLOCK);
    let slow = shadow.submit(&write(0, b"s"));
    shadow.write(1, b"q");
    let flush = shadow.flush_begun();
    shadow.answered(slow);
    shadow.flush_done(flush);
    assert!(is_allowed(&shadow, b"\0q\0\0") && is_allowed(&shadow, b"sq\0\0"));
    assert!(!is_allowed(&shadow, b"s\0\0\0") && !is_allowed(&shadow, b"\0\0\0\0"));
}

#[test]
fn a_failed_request_may_be_served_but_not_later() {
    let mut shadow = ShadowDisk::new(4, BLOCK);
    let failed = shadow.submit(&write(0, b"ff"));
    shadow.failed(failed);
    shadow.write(1, b"g");
    let flush = shadow.flush_begun();
    shadow.flush_done(flush);
    assert!(is_allowed(&shadow, b"fg\0\0") && is_allowed(&shadow, b"\0g\0\0"));
    assert!(!is_allowed(&shadow, b"ff\0\0"));
    let _never_answered = shadow.submit(&write(3, b"s"));
    let failed = shadow.submit(&write(0, b"hh"));
    shadow.failed(failed);
    shadow.write(1, b"i");
    assert!(is_allowed(&shadow, b"hi\0s"));
    let flush = shadow.flush_begun();
    shadow.flush_done(flush);
    assert!(is_allowed(&shadow, b"hi\0s") && !is_allowed(&shadow, b"hh\0s"));
}

#[test]
fn a_trim_clears_whole_blocks_only() {
    let mut shadow = ShadowDisk::new(16, BLOCK);
    shadow.write(0, b"aaaabbbbccccdddd");
    shadow.trim(2, 10);
    shadow.zero(13, 2);
    let flush = shadow.flush_begun();
    shadow.flush_done(flush);
    assert!(is_allowed(&shadow, b"aaaa\0\0\0\0\0\0\0\0d\0\0d"));
    shadow.trim(1, 2);
    assert!(is_allowed(&shadow, b"aaaa\0\0\0\0\0\0\0\0d\0\0d"));
}

#[test]
fn reads_must_show_requests_answered_before_them() {
    let mut shadow = ShadowDisk::new(8, BLOCK);
    shadow.write(2, b"abcd");
    let slow = shadow.submit(&write(6, b"z"));
    let read = shadow.submit(&DiskOp::Read { offset: 3, bytes: 4 });
    assert!(shadow.check_read(&read, 3, b"bcd\0").is_clean());
    assert!(shadow.check_read(&read, 3, b"bcdz").is_clean());
    assert_eq!(shadow.check_read(&read, 3, b"\0cd\0").first[0].wrong, Wrong::Stale);
    assert_eq!(shadow.check_read(&read, 3, b"bcdy").bytes_wrong, 1);
    shadow.answered(slow);
    assert!(shadow.check_read(&read, 3, b"bcd\0").is_clean(), "it was in flight together");
    let later = shadow.submit(&DiskOp::Read { offset: 3, bytes: 4 });
    assert!(!shadow.check_read(&later, 3, b"bcd\0").is_clean());
}

#[test]
fn adopted_contents_stay_unless_they_are_not_durable() {
    let mut shadow = ShadowDisk::new(8, BLOCK);
    shadow.write(0, b"aaaabbbb");
    let held = b"aaaa\0\0\0\0";
    assert!(is_allowed(&shadow, held));
    let mut lenient = ShadowDisk::new(8, BLOCK);
    lenient.write(0, b"aaaabbbb");
    lenient.adopt_unflushed(reader(held));
    assert!(is_allowed(&lenient, &[0; 8]) && is_allowed(&lenient, b"aaaabbbb"));
    let flush = lenient.flush_begun();
    lenient.flush_done(flush);
    shadow.adopt(reader(held));
    for shadow in [&shadow, &lenient] {
        assert!(is_allowed(shadow, held));
        assert_eq!(wrong(shadow, &[0; 8]), [(0, Wrong::Stale)]);
        assert_eq!(wrong(shadow, b"aaaabbbb"), [(1, Wrong::Stale)]);
    }
}

#[test]
fn hundreds_of_versions_between_flushes_are_handled() {
    let mut shadow = ShadowDisk::new(4, BLOCK);
    for version in 0..500u32 {
        shadow.write(0, &version.to_be_bytes());
    }
    assert!(is_allowed(&shadow, &77u32.to_be_bytes()));
    assert!(!is_allowed(&shadow, &500u32.to_be_bytes()));
}
