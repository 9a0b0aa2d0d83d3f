//! How values are shown to people: on one line, of bounded length, and without passwords.

/// Longer texts are cut.
const SHOWN_CHARACTERS_MAX: usize = 60;

/// A text on one line, cut if it is long, with its control characters escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == SHOWN_CHARACTERS_MAX {
            shown.push_str("...");
            break;
        }
        if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}') {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// An address with whatever may be a password hidden, or `None` if it holds none.
///
/// What hides is decided from the outside in: everything between the scheme and the last `@`, everything behind a `?`, and
/// the whole text if it is a list of `key=value` pairs. Better too much than a password.
pub(crate) fn without_credentials(address: &str) -> Option<String> {
    let (scheme, rest) = match address.find("://") {
        Some(end) => address.split_at(end + 3),
        None => ("", address),
    };
    if scheme.is_empty() && !rest.contains('@') && rest.split([' ', ';']).any(|pair| pair.contains('=')) {
        return Some("***".to_owned());
    }
    let (user, rest) = match rest.rsplit_once('@') {
        Some((_, host)) => ("***@", host),
        None => ("", rest),
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, _)) => (rest, "?***"),
        None => (rest, ""),
    };
    (!user.is_empty() || !query.is_empty()).then(|| format!("{scheme}{user}{rest}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shown_on_one_line_of_bounded_length() {
        assert_eq!(printable("a\nb\u{7f}\u{2028}"), "a\\u{a}b\\u{7f}\\u{2028}");
        assert_eq!(printable(&"é".repeat(61)), format!("{}...", "é".repeat(60)));
        assert_eq!(printable(&"é".repeat(60)), "é".repeat(60));
    }

    #[test]
    fn passwords_in_addresses_are_hidden() {
        for (address, shown) in [
            ("postgres://u:p@db:5432/shop?sslmode=require", Some("postgres://***@db:5432/shop?***")),
            ("postgres://u:p@ss@db/shop", Some("postgres://***@db/shop")),
            ("mysql://u:p?x@db/shop", Some("mysql://***@db/shop")),
            ("user:secret@tcp(db:3306)/shop", Some("***@tcp(db:3306)/shop")),
            ("host=db password=x", Some("***")),
            ("Server=db;Password=x", Some("***")),
            ("https://catalog/api?token=x", Some("https://catalog/api?***")),
            ("postgres://db:5432/shop", None),
            ("broker-1:9092,broker-2:9092", None),
            ("./warehouse", None),
            ("s3://bucket/path", None),
        ] {
            assert_eq!(without_credentials(address).as_deref(), shown, "{address}");
        }
    }
}
