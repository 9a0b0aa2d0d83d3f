//! Text in columns, for people. What a cell holds may come from anywhere: it is shown on one line, of bounded width, and no
//! control character of it reaches the terminal.

use console::{Alignment, measure_text_width, pad_str, style, truncate_str};

/// Wider cells are cut, if nobody says otherwise; `--output json` has all of them.
const WIDTH_MAX: usize = 160;
const GAP: &str = "  ";

/// A table of texts.
#[derive(Debug)]
pub(crate) struct Grid {
    heads: Vec<(String, Alignment)>,
    rows: Vec<Vec<String>>,
    indent: &'static str,
    width_max: usize,
}

impl Grid {
    /// One with these columns. A name that begins with `>` is of a column of numbers, which stand to the right.
    pub(crate) fn new(heads: &[&str]) -> Self {
        Self::of(heads.iter().map(|head| match head.strip_prefix('>') {
            Some(name) => (name.to_owned(), Alignment::Right),
            None => ((*head).to_owned(), Alignment::Left),
        }))
    }

    /// One with columns whose names come from somewhere else.
    pub(crate) fn of(heads: impl IntoIterator<Item = (String, Alignment)>) -> Self {
        Self {
            heads: heads.into_iter().map(|(name, alignment)| (shown(&name, WIDTH_MAX), alignment)).collect(),
            rows: Vec::new(),
            indent: "",
            width_max: WIDTH_MAX,
        }
    }

    /// Moves it to the right.
    pub(crate) fn indented(mut self) -> Self {
        self.indent = "  ";
        self
    }

    /// Cuts cells that are wider, of the rows that come from here on.
    pub(crate) fn cut_at(mut self, width_max: usize) -> Self {
        self.width_max = width_max;
        self
    }

    /// Adds a row, a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| shown(&cell, self.width_max)).collect());
    }

    /// The text, with the names of the columns above if there are any.
    pub(crate) fn text(&self) -> String {
        let widths: Vec<usize> = (0..self.heads.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.chain([&self.heads[column].0]).map(|cell| measure_text_width(cell)).max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        if self.heads.iter().any(|(name, _)| !name.is_empty()) {
            let names: Vec<String> = self.heads.iter().map(|(name, _)| name.clone()).collect();
            let line = self.line(&names, &widths);
            text.push_str(&format!("{}{}\n", self.indent, style(line).bold()));
        }
        for row in &self.rows {
            text.push_str(&format!("{}{}\n", self.indent, self.line(row, &widths)));
        }
        text
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let padded = cells.iter().zip(widths).zip(&self.heads);
        let padded: Vec<_> = padded.map(|((cell, width), (_, alignment))| pad_str(cell, *width, *alignment, None)).collect();
        padded.join(GAP).trim_end().to_owned()
    }
}

/// A text as a cell shows it.
fn shown(text: &str, width_max: usize) -> String {
    let mut one_line = String::with_capacity(text.len().min(4 * width_max));
    // Nobody sees more than this, whatever it holds.
    for character in text.chars().take(width_max + 1) {
        match character {
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                one_line.extend(character.escape_unicode());
            }
            _ if character.is_control() => one_line.extend(character.escape_default()),
            _ => one_line.push(character),
        }
    }
    truncate_str(&one_line, width_max, "…").into_owned()
}

/// A number with its thousands told apart.
pub(crate) fn count(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// Bytes in a unit that people can compare.
pub(crate) fn bytes(number: u64) -> String {
    indicatif::BinaryBytes(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_numbers_stand_right() {
        let mut grid = Grid::new(&["table", ">rows"]);
        grid.row(["orders".into(), "7".into()]);
        grid.row(["ключи".into(), "1,234".into()]);
        assert_eq!(console::strip_ansi_codes(&grid.text()), "table    rows\norders      7\nключи   1,234\n");
    }

    #[test]
    fn without_names_there_is_no_line_of_names() {
        let mut grid = Grid::new(&["", ""]).indented();
        grid.row(["a".into(), "b".into()]);
        assert_eq!(grid.text(), "  a  b\n");
    }

    #[test]
    fn no_control_character_of_a_value_reaches_the_terminal() {
        assert_eq!(shown("a\u{1b}[31mb\r\nc", 48), "a\\u{1b}[31mb\\r\\nc");
        assert_eq!(shown("\u{202e}x", 48), "\\u{202e}x");
    }

    #[test]
    fn a_long_value_is_cut_to_the_width_that_it_takes_on_a_screen() {
        assert_eq!(shown(&"x".repeat(48), 48), "x".repeat(48));
        assert_eq!(shown(&"x".repeat(49), 48), format!("{}…", "x".repeat(47)));
        assert_eq!(shown(&"字".repeat(30), 48), format!("{}…", "字".repeat(23)));
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(1536), "1.50 KiB");
    }
}
