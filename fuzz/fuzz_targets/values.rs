//! Feeds `fuzz_targets::values`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::values(bytes);
});
