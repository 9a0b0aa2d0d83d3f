//! Which of its table's columns a relation of the log tells.
//!
//! The server numbers a table's columns, for ever, and tells the log's reader only their names: a column that was renamed, and one that
//! was dropped and made again, look alike. The catalogue has the numbers, as they are *now*, which may be long after the relation. What is
//! sure is: a relation tells columns in the order of their numbers, a number never gets another column, and what was dropped stays away.
//! Of all answers that fit, the one is taken in which the fewest columns had another name, or are left out of the publication although
//! they are there; and where there are two of those that is said.

use std::collections::BTreeMap;

use rows::TableSchema;

use crate::catalog::Attribute;

/// What a relation's columns are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    /// The number of each, as far as it is known.
    pub(crate) of: Vec<Option<u32>>,
    /// A column that may be one or another.
    pub(crate) unclear: Option<String>,
}

/// A column as a relation tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told<'a> {
    pub(crate) name: &'a str,
    /// May it be the one that was called so before, by its type?
    pub(crate) may_be_old: bool,
}

/// Works out what the columns are that a relation tells. `before` is what the last one told, or the copy's state, `now` the catalogue.
pub(crate) fn numbers(told: &[Told<'_>], before: &TableSchema, now: &BTreeMap<u32, Attribute>) -> Numbers {
    let had = |name: &str| before.index_of(name).and_then(|at| before.columns[at].identity);
    if now.is_empty() {
        // The table is gone, and nobody will know more.
        return Numbers { of: told.iter().map(|column| had(column.name)).collect(), unclear: None };
    }
    let was_there = |number: u32| before.columns.iter().any(|column| column.identity == Some(number));
    let last = before.columns.iter().filter_map(|column| column.identity).max().unwrap_or(0);
    let places: Vec<Place> = now
        .iter()
        .map(|(number, column)| Place {
            number: *number,
            may_be_told: column.name.is_some() || was_there(*number) || *number > last,
            left_out: usize::from(column.name.is_some() && was_there(*number)),
        })
        .collect();
    let is_renamed = |column: usize, place: &Place| {
        let Told { name, may_be_old } = told[column];
        let is_old = may_be_old && had(name) == Some(place.number);
        !is_old && now.get(&place.number).is_none_or(|column| column.name.as_deref() != Some(name))
    };
    let Some([first, last]) = Fits::of(told.len(), &places, &is_renamed) else {
        return Numbers { of: vec![None; told.len()], unclear: told.first().map(|column| column.name.to_owned()) };
    };
    let unclear = first.iter().zip(&last).position(|(first, last)| first != last);
    Numbers { of: last.into_iter().map(Some).collect(), unclear: unclear.map(|at| told[at].name.to_owned()) }
}

/// A number of the table.
#[derive(Clone, Copy, Debug)]
struct Place {
    number: u32,
    may_be_told: bool,
    /// What it counts if it is not told.
    left_out: usize,
}

/// What the first columns count at least among the first numbers; nothing where they don't fit.
struct Fits(Vec<Vec<Option<usize>>>);

impl Fits {
    /// Of the answers that count the least the one with the lowest numbers and the one with the highest.
    fn of(columns: usize, places: &[Place], is_renamed: &dyn Fn(usize, &Place) -> bool) -> Option<[Vec<u32>; 2]> {
        let mut row = vec![None; columns + 1];
        row[0] = Some(0);
        let mut least = Self(vec![row]);
        for place in places {
            let above = &least.0[least.0.len() - 1];
            let best = |column: usize| {
                let passed = above[column].map(|least| least + place.left_out);
                let taken = column.checked_sub(1).filter(|_| place.may_be_told);
                let taken = taken.and_then(|last| Some(above[last]? + usize::from(is_renamed(last, place))));
                passed.into_iter().chain(taken).min()
            };
            let row = (0..=columns).map(best).collect();
            least.0.push(row);
        }
        let lowest = least.back(columns, places, is_renamed, true)?;
        Some([lowest, least.back(columns, places, is_renamed, false)?])
    }

    /// One of the best answers, from the last number to the first.
    fn back(&self, columns: usize, places: &[Place], is_renamed: &dyn Fn(usize, &Place) -> bool, low: bool) -> Option<Vec<u32>> {
        let mut column = columns;
        let mut numbers = Vec::with_capacity(columns);
        for (at, place) in places.iter().enumerate().rev() {
            let best = self.0[at + 1][column]?;
            let may_pass = self.0[at][column].is_some_and(|least| least + place.left_out == best);
            let taken = column.checked_sub(1).filter(|_| place.may_be_told);
            let may_take = taken
                .is_some_and(|last| self.0[at][last].is_some_and(|least| least + usize::from(is_renamed(last, place)) == best));
            if may_take && !(low && may_pass) {
                numbers.push(place.number);
                column -= 1;
            }
        }
        numbers.reverse();
        (column == 0).then_some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use rows::{Column, Type};

    use super::*;

    /// Columns with their numbers; 0 is none.
    fn schema(columns: &[(&str, u32)]) -> TableSchema {
        let column = |(name, number): &(&str, u32)| Column {
            name: (*name).to_owned(),
            kind: Type::Int32,
            nullable: true,
            initial: None,
            identity: (*number > 0).then_some(*number),
        };
        TableSchema::new("shop.orders".into(), columns.iter().map(column).collect(), Vec::new()).unwrap()
    }

    /// What is worked out, from the names that the catalogue has now in the order of their numbers; "" was dropped.
    fn found(told: &[&str], before: &[(&str, u32)], now: &[&str]) -> (Vec<u32>, Option<String>) {
        let told: Vec<Told<'_>> = told.iter().map(|name| Told { name, may_be_old: true }).collect();
        let attribute = |name: &&str| Attribute { name: (!name.is_empty()).then(|| (*name).to_owned()), initial: None };
        let now = (1..).zip(now.iter().map(attribute)).collect();
        let Numbers { of, unclear } = numbers(&told, &schema(before), &now);
        (of.into_iter().map(|number| number.unwrap_or(0)).collect(), unclear)
    }

    fn sure(numbers: &[u32]) -> (Vec<u32>, Option<String>) {
        (numbers.to_vec(), None)
    }

    fn unclear(numbers: &[u32], column: &str) -> (Vec<u32>, Option<String>) {
        (numbers.to_vec(), Some(column.to_owned()))
    }

    #[test]
    fn a_column_of_another_name_is_the_one_that_the_catalogue_calls_so() {
        assert_eq!(found(&["id", "b"], &[("id", 1), ("a", 2)], &["id", "b"]), sure(&[1, 2]));
        assert_eq!(found(&["id", "b"], &[("id", 1), ("a", 2)], &["id", "", "b"]), sure(&[1, 3]));
        // The name moves on to a column that came.
        assert_eq!(found(&["id", "old", "a"], &[("id", 1), ("a", 2), ("new", 3)], &["id", "old", "a"]), sure(&[1, 2, 3]));
        // Two change their names.
        assert_eq!(found(&["id", "b", "a"], &[("id", 1), ("a", 2), ("b", 3)], &["id", "b", "a"]), sure(&[1, 2, 3]));
    }

    #[test]
    fn what_stands_in_front_of_a_change_is_what_it_was() {
        for now in [&["id", "b"][..], &["id", ""], &["id", "", "b"], &["id", "old", "a"], &["a", "id"], &[]] {
            assert_eq!(found(&["id", "a"], &[("id", 1), ("a", 2)], now), sure(&[1, 2]), "{now:?}");
        }
    }

    #[test]
    fn a_column_that_was_made_again_where_nothing_shows_where_is_unclear() {
        assert_eq!(found(&["id", "a"], &[("id", 1), ("a", 2)], &["id", "", "a"]), unclear(&[1, 3], "a"));
        // Another column in between shows where.
        let before = [("id", 1), ("a", 2), ("z", 3)];
        assert_eq!(found(&["id", "z", "a"], &before, &["id", "", "z", "a"]), sure(&[1, 3, 4]));
        assert_eq!(found(&["id", "a", "z"], &before, &["id", "", "z", "a"]), sure(&[1, 2, 3]));
    }

    #[test]
    fn between_two_changes_a_column_is_the_one_that_is_left_for_it() {
        // a became b, and then c.
        assert_eq!(found(&["id", "b"], &[("id", 1), ("a", 2)], &["id", "c"]), sure(&[1, 2]));
        assert_eq!(found(&["id", "b", "z"], &[("id", 1), ("a", 2), ("z", 3)], &["id", "c", "z", "more"]), sure(&[1, 2, 3]));
        assert_eq!(found(&["id", "b", "z"], &[("id", 1), ("a", 3), ("z", 4)], &["id", "", "c", "z"]), sure(&[1, 3, 4]));
        // a became b and went, or it went and b came and became c.
        assert_eq!(found(&["id", "b"], &[("id", 1), ("a", 2)], &["id", "", "c"]), unclear(&[1, 3], "b"));
        // More columns than there ever were: that is not understood.
        assert_eq!(found(&["a", "b", "x"], &[("b", 1), ("a", 2)], &["b", "a"]), unclear(&[0, 0, 0], "a"));
        // One became another and took its name back while two others were to swap theirs.
        let before = [("id", 1), ("c", 2), ("b", 3), ("n", 4)];
        assert_eq!(found(&["id", "a", "b", "n"], &before, &["key", "b", "a", "n"]), sure(&[1, 2, 3, 4]));
    }

    #[test]
    fn a_column_that_is_not_published_any_more_is_passed() {
        assert_eq!(found(&["id", "z"], &[("id", 1), ("a", 2), ("z", 3)], &["id", "a", "z"]), sure(&[1, 3]));
        assert_eq!(found(&["id", "z"], &[("id", 1), ("z", 3)], &["id", "a", "z", "more"]), sure(&[1, 3]));
        assert_eq!(found(&["id", "z", "new"], &[("id", 1), ("a", 2), ("z", 3)], &["id", "a", "z", "new"]), sure(&[1, 3, 4]));
    }

    #[test]
    fn a_column_of_another_type_is_not_the_one_that_was_called_so() {
        let now = (1..).zip([Some("id"), None, Some("a")].map(|name| Attribute { name: name.map(str::to_owned), initial: None }));
        let told = ["id", "a"].map(|name| Told { name, may_be_old: name == "id" });
        let Numbers { of, unclear } = numbers(&told, &schema(&[("id", 1), ("a", 2)]), &now.collect());
        assert_eq!((of, unclear), (vec![Some(1), Some(3)], None));
    }

    #[test]
    fn a_copy_that_was_made_without_numbers_gets_those_of_the_names() {
        assert_eq!(found(&["id", "a"], &[("id", 0), ("a", 0)], &["id", "", "a"]), sure(&[1, 3]));
        assert_eq!(found(&["id", "a"], &[("id", 0), ("a", 0)], &["id", "b"]), sure(&[1, 2]));
    }
}
