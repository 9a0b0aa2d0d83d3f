//! Values as JSON, one canonical form a type.
//!
//! | type | JSON | why |
//! |---|---|---|
//! | `bool` | `true`, `false` | |
//! | `int8` to `int64`, `uint8` to `uint64` | number, all digits | one column has one JSON type. A reader that takes every number for a double loses digits beyond 2^53; the file does not |
//! | `float32`, `float64` | number, the shortest that reads back as the same; `"NaN"`, `"Infinity"`, `"-Infinity"` | JSON has no such numbers |
//! | `decimal(p,s)` | text, with `s` digits after the point: `"12.30"` | readers take a number for a double |
//! | `string`, `enum` | text | |
//! | `json` | the value itself, as it was written but for white space between its parts | |
//! | `binary`, `binary(n)` | text, base64 with padding | |
//! | `date` | `"2024-02-29"`; before the year 0 and after 9999 with a sign | ISO 8601 |
//! | `time` | `"23:59:59.000001"`, always six digits | texts sort like the times |
//! | `timestamp` | `"2024-02-29T23:59:59.000001"` | |
//! | `timestamptz` | `"2024-02-29T23:59:59.000001Z"` | always UTC |
//! | `uuid` | `"8-4-4-4-12"`, lower case | |
//! | `list(t)` | array | |
//! | `map(k,v)` | object if `k` is `string` or `enum`, else array of `{"key","value"}` | JSON's names are texts |
//! | `struct(...)` | object, every field | |
//! | any null | `null` | |
//!
//! What has no such form (a `json` that is none, a time of day that no day has, a map that holds a key twice) is refused,
//! by the name of its column; never the value is named.

mod cells;
mod text;

pub(crate) use cells::{Column, Refusal, object, quoted};
pub(crate) use text::timestamp;
