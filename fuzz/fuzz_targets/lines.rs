//! Feeds `fuzz_targets::lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::lines(bytes);
});
