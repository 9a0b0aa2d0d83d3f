//! The text of a script: blocks of what happens and what is said to it. Everything else in the file is kept as it is.

use crate::Player;

/// A parsed script.
pub(crate) struct Script {
    blocks: Vec<Block>,
    /// What comes after the last block.
    tail: Vec<String>,
}

struct Block {
    /// Comments, blank lines and the lines that happen, as they stand in the file.
    before: Vec<String>,
    /// Those that happen, with their numbers in the file.
    happens: Vec<(usize, String)>,
    /// What is said to them.
    said: Vec<String>,
}

const RULE: &str = "----";
const NOTHING: &str = "(nothing)";

impl Script {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut blocks = vec![];
        let (mut before, mut happens) = (vec![], vec![]);
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            if line == RULE {
                let said: Vec<String> =
                    lines.by_ref().map(|(_, line)| line.to_string()).take_while(|line| !line.is_empty()).collect();
                if happens.is_empty() {
                    return Err(format!("line {}: nothing happens before '{RULE}'", number + 1));
                }
                blocks.push(Block { before: std::mem::take(&mut before), happens: std::mem::take(&mut happens), said });
                continue;
            }
            if !line.is_empty() && !line.starts_with('#') {
                happens.push((number + 1, line.to_string()));
            }
            before.push(line.to_string());
        }
        match happens.first() {
            Some((number, line)) => Err(format!("line {number}: '{line}' is not followed by '{RULE}'")),
            None => Ok(Self { blocks, tail: before }),
        }
    }

    /// The same script with what is really said.
    pub(crate) fn play(&self, player: &mut dyn Player) -> Result<Script, String> {
        let mut blocks = vec![];
        for block in &self.blocks {
            let mut said = vec![];
            for (number, line) in &block.happens {
                said.extend(player.play(line).map_err(|why| format!("line {number}: '{line}': {why}"))?);
            }
            if said.is_empty() {
                said.push(NOTHING.to_string());
            }
            blocks.push(Block { before: block.before.clone(), happens: block.happens.clone(), said });
        }
        Ok(Script { blocks, tail: self.tail.clone() })
    }

    pub(crate) fn text(&self) -> String {
        let mut lines: Vec<&str> = vec![];
        for (n, block) in self.blocks.iter().enumerate() {
            if n > 0 {
                lines.push("");
            }
            lines.extend(block.before.iter().map(String::as_str));
            lines.push(RULE);
            lines.extend(block.said.iter().map(String::as_str));
        }
        if !self.tail.is_empty() {
            lines.push("");
            lines.extend(self.tail.iter().map(String::as_str));
        }
        lines.join("\n") + "\n"
    }
}

/// The first lines that differ.
pub(crate) fn difference(is: &str, should: &str) -> String {
    let (is, should): (Vec<&str>, Vec<&str>) = (is.lines().collect(), should.lines().collect());
    let same = is.iter().zip(&should).take_while(|(a, b)| a == b).count();
    let rest = |lines: &[&str], sign: &str| {
        let few: Vec<String> = lines.iter().skip(same).take(4).map(|line| format!("  {sign} {line}")).collect();
        few.join("\n")
    };
    format!("line {}:\n{}\n{}", same + 1, rest(&is, "-"), rest(&should, "+"))
}
