//! Feeds `fuzz_targets::machine`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = fuzz_targets::machine(bytes);
});
