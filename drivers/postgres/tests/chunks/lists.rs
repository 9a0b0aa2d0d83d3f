//! Publications that name a table's columns: what helps is what the server takes, and the application goes on after it.

use std::collections::BTreeMap;

use contract::{Error, Finding, Kind, Severity, Source, TableRequest};
use postgres_source::PostgresSource;
use rows::Type;

use crate::desk::{source, wanted};
use crate::postgres::{Postgres, Release};

/// A column at which the log would stop.
const STOPPING: &str = "CREATE TABLE t (id int PRIMARY KEY, n int, acls aclitem[]); CREATE TABLE other (id int PRIMARY KEY)";

/// A database with these tables and rows in `t`, and a pipeline that may make what it needs.
fn begin(server: &Postgres, name: &str, tables: &str) -> PostgresSource {
    server.sql("postgres", &format!("CREATE DATABASE {name}"));
    server.sql(name, &format!("{tables}; INSERT INTO t (id, n) VALUES (1, 10), (2, 20), (3, 30)"));
    source(&server.uri(name), name)
}

/// What the application does, undone again.
fn works(server: &Postgres, name: &str) -> Result<(), String> {
    server.try_sql(name, "BEGIN; UPDATE t SET n = n + 1; DELETE FROM t WHERE id = 2; ROLLBACK").map(|_| ())
}

async fn described(source: &PostgresSource) -> Result<Vec<String>, Error> {
    let described = source.describe(&[wanted("public.t")], &BTreeMap::new()).await?;
    Ok(described[0].schema.columns.iter().map(|column| column.name.clone()).collect())
}

/// The statements of a remedy that leaves a column out: the one for a table with whole old rows, and the others with these columns.
fn leaving_out(remedy: &str, columns: &str, others: &str) -> (String, String) {
    let (_, statement) = remedy.split_once("(15 and later): ").unwrap();
    let (statement, more) = statement.split_once("; (").unwrap();
    let (_, identity) = more.split_once("is FULL, first ").unwrap();
    let (identity, _) = identity.split_once(';').unwrap();
    (identity.to_owned(), statement.replace("(...)", columns).replace(", ... WITH", &format!("{others} WITH")))
}

async fn a_column_is_left_out_by_the_statement_that_is_said(release: Release) {
    let server = Postgres::start(release, &[]);
    for (name, publication, others) in [
        ("missing", "", ""),
        ("lacking", "CREATE PUBLICATION lacking_pub FOR TABLE other", ""),
        ("named", "CREATE PUBLICATION named_pub FOR TABLE t, other", ""),
        ("filtered", "CREATE PUBLICATION filtered_pub FOR TABLE t WHERE (id > 1), other", ""),
        ("everything", "CREATE PUBLICATION everything_pub FOR ALL TABLES", ", other"),
        ("schemas", "CREATE PUBLICATION schemas_pub FOR TABLES IN SCHEMA public", ", other"),
        ("mixed", "CREATE PUBLICATION mixed_pub FOR TABLE t, TABLES IN SCHEMA public", ", other"),
    ] {
        for is_full in [false, true] {
            let name = &if is_full { format!("{name}_full") } else { name.to_owned() };
            let source = begin(&server, name, STOPPING);
            if is_full {
                server.sql(name, "ALTER TABLE t REPLICA IDENTITY FULL");
            }
            server.sql(name, &publication.replace("_pub", if is_full { "_full_pub" } else { "_pub" }));
            works(&server, name).unwrap();
            let error = described(&source).await.unwrap_err();
            assert_eq!((error.kind, error.code), (Kind::Config, "postgres-type"), "{error}");
            let (identity, statement) = leaving_out(&error.remedy, "(id, n)", others);
            if is_full {
                server.sql(name, &identity);
            }
            server.sql(name, &statement);
            works(&server, name).unwrap();
            source.prepare(&[wanted("public.t"), wanted("public.other")]).await.unwrap();
            assert_eq!(described(&source).await.unwrap(), ["id", "n"], "{name}");
            works(&server, name).unwrap();
            let findings = source.preflight(&[wanted("public.t"), wanted("public.other")]).await;
            assert!(findings.iter().all(|finding| finding.severity != Severity::Error), "{name}: {findings:?}");
            let published = "SELECT tablename, coalesce(rowfilter, '') FROM pg_publication_tables ORDER BY 1 DESC";
            let filter = if publication.contains("WHERE") { "(id > 1)" } else { "" };
            assert_eq!(server.sql(name, published), format!("t|{filter}\nother|"), "{name}");
            // Without what is said of whole old rows the server would refuse what the application does.
            server.sql(name, "ALTER TABLE t REPLICA IDENTITY FULL");
            let said = works(&server, name).unwrap_err();
            assert!(said.contains("Column list used by the publication does not cover the replica identity"), "{said}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_is_left_out_by_the_statement_that_is_said_to_postgresql_15() {
    a_column_is_left_out_by_the_statement_that_is_said(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_is_left_out_by_the_statement_that_is_said_to_postgresql_18() {
    a_column_is_left_out_by_the_statement_that_is_said(Release::Eighteen).await;
}

fn error_of(findings: &[Finding], code: &str) -> Option<Finding> {
    let is_it = |finding: &&Finding| finding.code == code && finding.severity == Severity::Error;
    findings.iter().find(is_it).cloned()
}

/// Of a table with whole old rows the server refuses changes for any list of columns: said, with what ends it.
async fn a_list_of_columns_and_whole_old_rows_are_said_to_exclude_each_other(release: Release) {
    let server = Postgres::start(release, &[]);
    let stored = "CREATE TABLE t (id int PRIMARY KEY, n int, made int GENERATED ALWAYS AS (n * 2) STORED)";
    let mut cases = vec![
        ("partly", "CREATE TABLE t (id int PRIMARY KEY, n int, more int)", "t (id, n)", "(more)"),
        ("wholly", "CREATE TABLE t (id int PRIMARY KEY, n int)", "t (id, n)", "names its columns"),
        ("filtered", "CREATE TABLE t (id int PRIMARY KEY, n int, more int)", "t (id, n) WHERE (id > 0)", "(more)"),
        ("made", stored, "t (id, n)", "(made)"),
        ("keyless", "CREATE TABLE t (id int NOT NULL UNIQUE, n int, more int)", "t (id, n)", "(more)"),
        ("apart", "CREATE TABLE t (id int NOT NULL UNIQUE, n int, more serial PRIMARY KEY)", "t (id, n)", "(more)"),
    ];
    if release == Release::Eighteen {
        cases.push(("named", stored, "t (id, n, made)", "names its columns"));
        let never = "CREATE TABLE t (id int PRIMARY KEY, n int, made int GENERATED ALWAYS AS (n * 2) VIRTUAL)";
        cases.push(("never", never, "t (id, n)", "(made)"));
    }
    for (name, table, listed, said) in cases {
        let source = begin(&server, name, &format!("{table}; ALTER TABLE t REPLICA IDENTITY FULL"));
        server.sql(name, &format!("CREATE PUBLICATION {name}_pub FOR TABLE {listed}"));
        works(&server, name).unwrap_err();
        let mut request = wanted("public.t");
        request.primary_key = Some(vec!["id".into()]);
        let found = error_of(&source.preflight(std::slice::from_ref(&request)).await, "postgres-identity").expect(name);
        assert!(found.what.contains(said) && found.what.contains("refuses every UPDATE and DELETE"), "{name}: {found:?}");
        let (narrow, whole) = match found.remedy.split_once(" Or publish all of its columns: ") {
            Some((narrow, whole)) => (narrow, Some(whole)),
            None => (found.remedy.as_str(), None),
        };
        assert_eq!(whole.is_none(), name == "never", "{found:?}");
        if let Some(whole) = whole {
            server.sql(name, whole);
            works(&server, name).unwrap();
            assert_eq!(error_of(&source.preflight(std::slice::from_ref(&request)).await, "postgres-identity"), None, "{name}");
            let filter = server.sql(name, "SELECT rowfilter FROM pg_publication_tables");
            assert_eq!(!filter.is_empty(), listed.contains("WHERE"), "{name}: {filter}");
            server.sql(name, &format!("ALTER PUBLICATION {name}_pub SET TABLE {listed}"));
            works(&server, name).unwrap_err();
        }
        let (statement, _) = narrow.split_once(';').unwrap();
        assert_eq!(statement.ends_with("DEFAULT"), !["keyless", "apart"].contains(&name), "{found:?}");
        server.sql(name, &statement.replace("INDEX ...", "INDEX t_id_key"));
        works(&server, name).unwrap();
        assert_eq!(error_of(&source.preflight(&[request]).await, "postgres-identity"), None, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_columns_and_whole_old_rows_are_said_to_exclude_each_other_in_postgresql_15() {
    a_list_of_columns_and_whole_old_rows_are_said_to_exclude_each_other(Release::Fifteen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_columns_and_whole_old_rows_are_said_to_exclude_each_other_in_postgresql_18() {
    a_list_of_columns_and_whole_old_rows_are_said_to_exclude_each_other(Release::Eighteen).await;
}

/// Where whole old rows would freeze a table, they are not what helps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_old_rows_are_not_advised_where_the_server_would_refuse_changes() {
    let server = Postgres::start(Release::Eighteen, &[]);
    let never = "n int, never int GENERATED ALWAYS AS (n * 2) VIRTUAL";
    let listed = begin(&server, "listed", "CREATE TABLE t (id int PRIMARY KEY, n int, body text, more int)");
    server.sql("listed", "CREATE PUBLICATION listed_pub FOR TABLE t (id, n, body)");
    let virtuals = begin(&server, "virtuals", &format!("CREATE TABLE t (id int PRIMARY KEY, {never}, body text)"));
    server.sql("virtuals", "CREATE PUBLICATION virtuals_pub FOR TABLE t");
    for (name, source, with) in [("listed", listed, "with a list of columns"), ("virtuals", virtuals, "with virtual columns")] {
        let request = TableRequest { keeps_every_row: true, ..wanted("public.t") };
        let findings = source.preflight(std::slice::from_ref(&request)).await;
        let found = findings.iter().find(|finding| finding.code == "postgres-unsent-value").unwrap();
        assert!(found.remedy.contains(with) && found.remedy.contains("write the table by key"), "{found:?}");
        assert!(!found.remedy.contains("USING INDEX"), "an index does not have large values sent: {found:?}");
        // A key that old rows do not tell.
        let by_n = TableRequest { primary_key: Some(vec!["n".into()]), ..wanted("public.t") };
        let untold = error_of(&source.preflight(&[by_n]).await, "postgres-identity").unwrap();
        assert!(untold.remedy.contains(with) && untold.remedy.contains("\"t\" REPLICA IDENTITY USING INDEX ...;"), "{untold:?}");

        let (_, statement) = leaving_out(&found.remedy, "(id, n)", "");
        server.sql(name, &statement);
        works(&server, name).unwrap();
        let findings = source.preflight(&[request]).await;
        assert!(findings.iter().all(|finding| finding.code != "postgres-unsent-value"), "{findings:?}");
    }

    // A table that has no identity, and can't have a whole one.
    let nothing = begin(&server, "nothing", &format!("CREATE TABLE t (id int NOT NULL UNIQUE, {never})"));
    let error = nothing.prepare(&[wanted("public.t")]).await.unwrap_err();
    assert!(error.remedy.contains("with virtual columns it cannot be FULL"), "{error}");
    assert!(error.remedy.contains("\"t\" REPLICA IDENTITY USING INDEX ...;"), "{error}");
}

/// A type that is not read is not said to be declared as itself, or as a text that does not hold it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_that_is_declared_wrong_is_told_what_holds_it() {
    let server = Postgres::start(Release::Fifteen, &[]);
    let source = begin(
        &server,
        "declared",
        "CREATE TYPE odd;
         CREATE FUNCTION odd_in(cstring) RETURNS odd AS 'float8in' LANGUAGE internal IMMUTABLE STRICT;
         CREATE FUNCTION odd_out(odd) RETURNS cstring AS 'float8out' LANGUAGE internal IMMUTABLE STRICT;
         CREATE FUNCTION odd_send(odd) RETURNS bytea AS 'float8send' LANGUAGE internal IMMUTABLE STRICT;
         CREATE TYPE odd (INPUT = odd_in, OUTPUT = odd_out, SEND = odd_send, INTERNALLENGTH = 8, ALIGNMENT = double, PASSEDBYVALUE);
         CREATE FUNCTION odd_cmp(odd, odd) RETURNS int AS 'btfloat8cmp' LANGUAGE internal IMMUTABLE STRICT;
         CREATE FUNCTION odd_lt(odd, odd) RETURNS bool AS 'float8lt' LANGUAGE internal IMMUTABLE STRICT;
         CREATE FUNCTION odd_le(odd, odd) RETURNS bool AS 'float8le' LANGUAGE internal IMMUTABLE STRICT;
         CREATE FUNCTION odd_eq(odd, odd) RETURNS bool AS 'float8eq' LANGUAGE internal IMMUTABLE STRICT;
         CREATE FUNCTION odd_ge(odd, odd) RETURNS bool AS 'float8ge' LANGUAGE internal IMMUTABLE STRICT;
         CREATE FUNCTION odd_gt(odd, odd) RETURNS bool AS 'float8gt' LANGUAGE internal IMMUTABLE STRICT;
         CREATE OPERATOR < (LEFTARG = odd, RIGHTARG = odd, FUNCTION = odd_lt);
         CREATE OPERATOR <= (LEFTARG = odd, RIGHTARG = odd, FUNCTION = odd_le);
         CREATE OPERATOR = (LEFTARG = odd, RIGHTARG = odd, FUNCTION = odd_eq);
         CREATE OPERATOR >= (LEFTARG = odd, RIGHTARG = odd, FUNCTION = odd_ge);
         CREATE OPERATOR > (LEFTARG = odd, RIGHTARG = odd, FUNCTION = odd_gt);
         CREATE OPERATOR CLASS odd_ops DEFAULT FOR TYPE odd USING btree AS
             OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 odd_cmp (odd, odd);
         CREATE TYPE span AS RANGE (subtype = odd);
         CREATE TABLE t (id int PRIMARY KEY, n int, o odd, os odd[], s span, w text)",
    );
    let declared = async |column: &str, kind: Type| {
        let request = TableRequest { columns: [(column.to_owned(), kind)].into(), ..wanted("public.t") };
        source.describe(&[request], &BTreeMap::new()).await
    };
    for (column, kind, said) in [
        ("o", Type::String, "declare it as `binary` to get its bytes"),
        ("os", Type::String, "declare it as `list(binary)` to get its bytes"),
        ("s", Type::String, "publish the table without it"),
        ("n", Type::Bool, "declare it as `int32`, or as `string`"),
        ("w", Type::Bool, "declare it as `string`"),
    ] {
        let error = declared(column, kind).await.unwrap_err();
        assert_eq!((error.kind, error.code), (Kind::Config, "postgres-type"), "{error}");
        assert!(error.remedy.starts_with(said) && !error.remedy.contains("unknown("), "{error}");
        assert_eq!(error.remedy.contains("string"), ["n", "w"].contains(&column), "{error}");
    }
    declared("o", Type::Binary).await.unwrap();
    declared("os", Type::List(Box::new(Type::Binary))).await.unwrap();
}
