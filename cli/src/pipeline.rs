//! The pipeline that a command is about: its file, read and checked, and its tables by the names that people use.

use std::collections::BTreeMap;
use std::path::Path;

use host::plan::TablePlan;
use kernel::id::TableName;
use spec::Pipeline;

use crate::output::Failure;

/// A pipeline file that is good, with what a run does with each table.
pub(crate) struct Loaded {
    pub(crate) spec: Pipeline,
    pub(crate) plans: BTreeMap<TableName, TablePlan>,
}

/// Reads and checks a pipeline file.
pub(crate) fn load(file: &Path) -> Result<Loaded, Failure> {
    let spec = spec::load(file)?;
    let plans = host::plan::tables(&spec)?;
    Ok(Loaded { spec, plans })
}

impl Loaded {
    /// A table by its name at the source, else by its name at the target.
    pub(crate) fn table(&self, name: &str) -> Result<(&TableName, &TablePlan), Failure> {
        let by_source = self.plans.get_key_value(&TableName::from(name));
        by_source.or_else(|| self.plans.iter().find(|(_, plan)| plan.target == name)).ok_or_else(|| {
            let names: Vec<&str> = self.plans.keys().map(TableName::as_str).collect();
            let what = format!("the pipeline {} has no table '{name}'", self.spec.name);
            Failure::usage("no-table", what, format!("it has {}", names.join(", ")))
        })
    }

    /// One line: the pipeline's name, and from where to where.
    pub(crate) fn title(&self) -> String {
        let uri = self.spec.sink.settings.shown().get("uri").and_then(|uri| uri.as_str().map(|uri| format!(" {uri}")));
        let (source, sink) = (self.spec.source.kind, self.spec.sink.kind);
        format!(
            "pipeline {}: {source} -> {sink}{}, namespace {}",
            self.spec.name,
            uri.unwrap_or_default(),
            self.spec.sink.namespace
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Failure;

    fn loaded() -> Loaded {
        let text = "pipeline: p
source: { kind: jsonl, path: c.jsonl }
sink: { kind: jsonl, uri: ./out, namespace: shop }
tables:
  - { source: shop.orders, primaryKey: [id], target: sales }
  - { source: sales, primaryKey: [id], target: other }
";
        let spec = spec::parse(text, "pipeline.yaml", &spec::ProcessEnvironment).unwrap();
        let plans = host::plan::tables(&spec).unwrap();
        Loaded { spec, plans }
    }

    #[test]
    fn a_table_is_found_by_its_name_at_the_source_before_its_name_at_the_target() {
        let loaded = loaded();
        assert_eq!(loaded.table("shop.orders").unwrap().0.as_str(), "shop.orders");
        assert_eq!(loaded.table("sales").unwrap().0.as_str(), "sales");
        assert_eq!(loaded.table("other").unwrap().0.as_str(), "sales");
    }

    #[test]
    fn a_table_that_is_not_there_is_told_with_those_that_are() {
        let loaded = loaded();
        let Err(Failure::Error(error)) = loaded.table("shop.order") else { panic!("no error of that kind") };
        assert_eq!(error.to_string(), "the pipeline p has no table 'shop.order' — it has sales, shop.orders [no-table]");
    }

    #[test]
    fn the_title_says_from_where_to_where() {
        assert_eq!(loaded().title(), "pipeline p: jsonl -> jsonl ./out, namespace shop");
    }
}
