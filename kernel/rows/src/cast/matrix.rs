//! Which type can become which.

use crate::schema::{Column, Type};

/// What a cast from one type to another does to its values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fit {
    /// Nothing, they are of one type.
    Same,
    /// Every value can be held, exactly.
    Lossless,
    /// Some values can be held, exactly; each is looked at.
    Checked,
    /// There is no such cast, because what it means would be a guess.
    Refused,
}

impl Fit {
    /// Of the parts of a nested type, the worst decides.
    fn and(self, other: Fit) -> Fit {
        match (self, other) {
            (Fit::Refused, _) | (_, Fit::Refused) => Fit::Refused,
            (Fit::Checked, _) | (_, Fit::Checked) => Fit::Checked,
            (Fit::Lossless, _) | (_, Fit::Lossless) => Fit::Lossless,
            (Fit::Same, Fit::Same) => Fit::Same,
        }
    }

    fn lossless_if(is: bool) -> Fit {
        if is { Fit::Lossless } else { Fit::Checked }
    }
}

/// What becomes of values of type `from` in a column of type `to`. The whole table is written out in `tests/cast.rs`.
pub fn fit(from: &Type, to: &Type) -> Fit {
    use Type::{Binary, Bool, Date, Enum, FixedBinary, Json, List, Map, String, Struct, Timestamp, Unknown, Uuid};
    if from == to {
        return Fit::Same;
    }
    match (from, to) {
        // What nobody knows, or only the source knows.
        (_, Unknown(_) | Enum) | (Unknown(_), Json) => Fit::Refused,
        // Everything has a text, and a place in JSON.
        (_, String | Json) if *from != String => Fit::Lossless,
        (List(from), List(to)) => fit(from, to),
        (Map(from_key, from), Map(to_key, to)) => match fit(from_key, to_key) {
            // Two keys must not become one.
            Fit::Checked => Fit::Refused,
            key => key.and(fit(from, to)),
        },
        (Struct(from), Struct(to)) => fit_fields(from, to),
        (List(_) | Map(..) | Struct(_), _) | (_, List(_) | Map(..) | Struct(_)) => Fit::Refused,
        // Text is read; what the source has no other form for too.
        (String | Unknown(_), _) => Fit::Checked,

        (Bool, to) if integer(to).is_some() => Fit::Lossless,
        (from, Bool) if integer(from).is_some() => Fit::Checked,
        (from, to) if is_number(from) && is_number(to) => fit_numbers(from, to),

        (Uuid | FixedBinary(_), Binary) | (Uuid, FixedBinary(16)) | (FixedBinary(16), Uuid) => Fit::Lossless,
        (Binary, Uuid | FixedBinary(_)) => Fit::Checked,
        // Some days are too far away for microseconds; of timestamps only midnights are days.
        (Date, Timestamp) | (Timestamp, Date) => Fit::Checked,
        _ => Fit::Refused,
    }
}

/// Fields are matched by name and order. Null in a field that allows none would be made up.
fn fit_fields(from: &[Column], to: &[Column]) -> Fit {
    if from.iter().map(|field| &field.name).ne(to.iter().map(|field| &field.name)) {
        return Fit::Refused;
    }
    let fits = from.iter().zip(to).map(|(from, to)| match fit(&from.kind, &to.kind) {
        Fit::Checked if !to.nullable => Fit::Refused,
        _ if from.nullable && !to.nullable => Fit::Refused,
        Fit::Same if from.nullable != to.nullable => Fit::Lossless,
        fit => fit,
    });
    fits.fold(Fit::Same, Fit::and)
}

fn fit_numbers(from: &Type, to: &Type) -> Fit {
    match (integer(from), integer(to)) {
        (Some((lowest, highest)), Some((to_lowest, to_highest))) => {
            Fit::lossless_if(to_lowest <= lowest && highest <= to_highest)
        }
        (Some((lowest, highest)), None) => match to {
            Type::Decimal { precision, scale } => Fit::lossless_if(highest < ten_to(i16::from(*precision) - i16::from(*scale))),
            Type::Float32 => Fit::lossless_if(lowest >= -(1 << 24) && highest <= 1 << 24),
            _ => Fit::lossless_if(lowest >= -(1 << 53) && highest <= 1 << 53),
        },
        (None, Some((_, highest))) => match from {
            Type::Decimal { precision, scale: 0 } => {
                Fit::lossless_if(ten_to(i16::from(*precision)) - 1 <= highest && integer_is_signed(to))
            }
            _ => Fit::Checked,
        },
        (None, None) => match (from, to) {
            (Type::Decimal { precision, scale }, Type::Decimal { precision: to_precision, scale: to_scale }) => {
                let whole = |precision: &u8, scale: &i8| i16::from(*precision) - i16::from(*scale);
                Fit::lossless_if(to_scale >= scale && whole(to_precision, to_scale) >= whole(precision, scale))
            }
            // So many decimal digits come back from a binary number as they were.
            (Type::Decimal { precision, .. }, Type::Float64) => Fit::lossless_if(*precision <= 15),
            (Type::Decimal { precision, .. }, Type::Float32) => Fit::lossless_if(*precision <= 6),
            (Type::Float32, Type::Float64) => Fit::Lossless,
            _ => Fit::Checked,
        },
    }
}

fn is_number(kind: &Type) -> bool {
    integer(kind).is_some() || matches!(kind, Type::Decimal { .. } | Type::Float32 | Type::Float64)
}

fn integer_is_signed(kind: &Type) -> bool {
    integer(kind).is_some_and(|(lowest, _)| lowest < 0)
}

fn ten_to(power: i16) -> i128 {
    10i128.pow(u32::try_from(power).unwrap_or(0))
}

/// The lowest and the highest value of an integer type.
pub(super) fn integer(kind: &Type) -> Option<(i128, i128)> {
    Some(match kind {
        Type::Int8 => (i8::MIN.into(), i8::MAX.into()),
        Type::Int16 => (i16::MIN.into(), i16::MAX.into()),
        Type::Int32 => (i32::MIN.into(), i32::MAX.into()),
        Type::Int64 => (i64::MIN.into(), i64::MAX.into()),
        Type::UInt8 => (0, u8::MAX.into()),
        Type::UInt16 => (0, u16::MAX.into()),
        Type::UInt32 => (0, u32::MAX.into()),
        Type::UInt64 => (0, u64::MAX.into()),
        _ => return None,
    })
}
