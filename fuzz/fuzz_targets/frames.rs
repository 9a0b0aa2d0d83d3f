//! Feeds `fuzz_targets::frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::frames(bytes);
});
