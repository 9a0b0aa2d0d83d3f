//! Feeds `fuzz_targets::key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::key(bytes);
});
