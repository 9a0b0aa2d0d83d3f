//! Feeds `fuzz_targets::scenario`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::scenario(bytes);
});
