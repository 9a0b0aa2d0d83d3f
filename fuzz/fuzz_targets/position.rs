//! Feeds `fuzz_targets::position`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::position(bytes);
});
