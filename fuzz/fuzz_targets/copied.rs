//! Feeds `fuzz_targets::copied`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::copied(bytes);
});
