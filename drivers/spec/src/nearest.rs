//! The known name that somebody most likely meant.

/// The candidate that is nearest to `name`, if one is near enough to be offered.
///
/// The same letters count as nearest whatever their case, hyphens and underscores (`primary_key` for `primaryKey`); then
/// the one with the fewest typing errors (insertions, deletions, replacements, swapped neighbours), at most one for each
/// three letters.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = letters_of(name);
    let errors_max = (letters.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&letters, &letters_of(candidate)), candidate))
        .filter(|(errors, candidate)| *errors <= errors_max && *errors < candidate.len())
        .min_by_key(|(errors, _)| *errors)
        .map(|(_, candidate)| candidate)
}

/// Only so much of a name is compared: the work is quadratic, and no known name is longer.
const COMPARED_MAX: usize = 64;

fn letters_of(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).take(COMPARED_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const NAMES: [&str; 4] = ["primaryKey", "partitionBy", "source", "target"];

    #[test]
    fn a_typing_error_is_forgiven() {
        assert_eq!(nearest("primarKey", NAMES), Some("primaryKey"));
        assert_eq!(nearest("sorce", NAMES), Some("source"));
        assert_eq!(nearest("tragets", NAMES), Some("target"));
    }

    #[test]
    fn case_and_separators_do_not_count() {
        assert_eq!(nearest("primary_key", NAMES), Some("primaryKey"));
        assert_eq!(nearest("PARTITION-BY", NAMES), Some("partitionBy"));
    }

    #[test]
    fn a_name_that_is_far_from_all_others_gets_no_offer() {
        assert_eq!(nearest("password", NAMES), None);
        assert_eq!(nearest("", NAMES), None);
        assert_eq!(nearest("x", NAMES), None);
    }
}
