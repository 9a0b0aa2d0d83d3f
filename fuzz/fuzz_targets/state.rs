//! Feeds `fuzz_targets::state`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::state(bytes);
});
