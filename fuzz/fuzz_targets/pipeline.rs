//! Feeds `fuzz_targets::pipeline`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::pipeline(bytes);
});
