//! Grammars of the size of languages: a subset of C, SELECT of SQL, and SQL over a catalogue of
//! tables with some 3,000 rules. And JSON, equal from every front end.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use louver::compile::Compiled;
use louver::engine::{Constraint, Engine, EngineOptions};
use louver::front::{ebnf, json_schema, lark};
use louver::ids::TokenId;
use louver::ir::Grammar;
use louver::limits::Limits;
use louver::matcher::Recognizer;
use louver::spec::json::Json;
use louver::vocab::Vocabulary;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn lower(text: &str) -> Grammar {
    let lowered = ebnf::lower(text, &Default::default(), &Limits::default())
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(lowered.warnings.is_empty(), "{}", lowered.warnings);
    lowered.grammar
}

/// A compiled language, and how to test texts with it.
struct Language {
    recognizer: Recognizer,
}

impl Language {
    fn compile(text: &str) -> Language {
        let begin = Instant::now();
        let grammar = lower(text);
        let rules = grammar.rules.len();
        let lowered = begin.elapsed();
        let compiled = Compiled::new(grammar, &Limits::default()).unwrap_or_else(|e| panic!("{e}"));
        println!("{rules} rules: lowered in {lowered:?}, compiled after {:?}", begin.elapsed());
        Language { recognizer: Recognizer::new(Arc::new(compiled)) }
    }

    /// How far a text is the beginning of a sentence, and whether all of it is one.
    fn read(&mut self, text: &str) -> (usize, bool) {
        self.recognizer.reset();
        match self.recognizer.push(text.as_bytes()) {
            Ok(()) => (text.len(), self.recognizer.is_complete()),
            Err(louver::matcher::Rejected::Byte { offset, .. }) => (offset, false),
            Err(limit) => panic!("{limit}"),
        }
    }

    fn accepts(&mut self, text: &str) {
        let (read, whole) = self.read(text);
        assert!(
            whole,
            "read up to {:?}",
            &text[read.saturating_sub(80)..(read + 20).min(text.len())]
        );
    }

    /// The text is not a sentence, and the first wrong byte is the one after `good`.
    fn rejects(&mut self, text: &str, good: &str) {
        assert!(text.starts_with(good));
        assert_eq!(self.read(text), (good.len(), false), "{text:?}");
    }
}

/// Many items of one state, each of which calls many rules.
#[test]
fn products_of_items_and_calls_are_limited() {
    let rules = 2_000;
    let mut text = "root ::= \"a\" root \"b\" | t\nt ::= \"a\"* \"#\" (".to_owned();
    let names: Vec<String> = (0..rules).map(|i| format!("c{i}")).collect();
    text.push_str(&names.join(" | "));
    text.push_str(")\n");
    for i in 0..rules {
        let _ = writeln!(text, "c{i} ::= \"l{i}\" | \"(\" c{i} \")\"");
    }
    let compiled = Compiled::new(lower(&text), &Limits::default()).expect("compiles");
    let compiled = Arc::new(compiled);
    let push = |items: usize| {
        let mut recognizer = Recognizer::new(compiled.clone());
        let text = format!("{}#l7{}", "a".repeat(items), "b".repeat(items));
        recognizer.push(text.as_bytes()).map(|()| recognizer.is_complete())
    };
    assert_eq!(push(1_000).ok(), Some(true));
    let refused = push(4_000).expect_err("eight million calls of one configuration");
    assert!(refused.to_string().contains("calls of one configuration"), "{refused}");
}

#[test]
fn a_subset_of_c_is_recognised() {
    let mut c = Language::compile(&read("ebnf/c_subset.ebnf"));
    for sample in ["store.c", "matrix.c"] {
        c.accepts(&read(&format!("ebnf/samples/{sample}")));
    }
    for text in [
        "",
        "int x;",
        "int f(int, char *[]);",
        "void (*signal(int, void (*)(int)))(int);",
        "unsigned long long a = 1ull, *b[3] = {0}, (*c)(void);",
        "int main() { return sizeof(int) + sizeof x; }",
        "T f(T x) { if (x) for (;;) ; else do x--; while (x > 0); }",
        "char *s = \"a\" /* b */ \"\\\"c\\x41\";",
        "int a[] = {[0] = 1, [2] = 'x', };",
        "int f(void) { a: switch (x) { case 1 ... }",
    ] {
        let whole = !text.contains("...");
        assert_eq!(c.read(text).1, whole, "{text}");
    }
    c.rejects("int x = ;", "int x = ");
    c.rejects("int f(void) { return 1 }", "int f(void) { return 1 ");
    c.rejects("int f(void) { x = (1; }", "int f(void) { x = (1");
    c.rejects("struct { int a };", "struct { int a ");
    c.rejects("char c = 'a;\n", "char c = 'a;");
    c.rejects("int a[3;", "int a[3");
    c.rejects("int 3x;", "int ");
}

#[test]
fn sql_select_is_recognised() {
    let mut sql = Language::compile(&read("ebnf/sql_select.ebnf"));
    for file in ["reports", "analytics"] {
        for query in read(&format!("ebnf/samples/{file}.sql")).split("---\n") {
            sql.accepts(query);
        }
    }
    for query in [
        "SELECT 1",
        "select*from t",
        "SELECT selects FROM froms",
        "SELECT a AS \"from\" FROM b;",
        "VALUES (1), (2)",
    ] {
        sql.accepts(query);
    }
    sql.rejects("SELECT , FROM t", "SELECT ");
    sql.rejects("SELECT a FROM t WHERE", "SELECT a FROM t WHERE");
    sql.rejects("SELECT (a FROM t", "SELECT (a ");
    sql.rejects("SELECT a b c FROM t", "SELECT a b ");
    sql.rejects("INSERT INTO t VALUES (1)", "");
    sql.rejects("SELECT CASE WHEN a THEN b", "SELECT CASE WHEN a THEN b");
}

/// SQL in which tables and columns are those of a catalogue, with a rule for each.
fn catalogue() -> String {
    const TABLES: [&str; 20] = [
        "customers",
        "orders",
        "order_items",
        "products",
        "suppliers",
        "shipments",
        "payments",
        "refunds",
        "invoices",
        "carts",
        "reviews",
        "coupons",
        "warehouses",
        "stock_levels",
        "employees",
        "departments",
        "tickets",
        "sessions",
        "events",
        "accounts",
    ];
    const PARTS: [&str; 10] = [
        "billing", "shipping", "origin", "target", "parent", "owner", "home", "backup", "legacy",
        "audit",
    ];
    const FIELDS: [&str; 11] = [
        "id",
        "name",
        "status",
        "amount",
        "currency",
        "created_at",
        "updated_at",
        "country",
        "code",
        "notes",
        "hash",
    ];
    let mut text = read("ebnf/sql_select.ebnf").replace(
        "column ::= qualified-name\n",
        "column ::= (table-name dot | identifier dot)? column-name\n",
    );
    text = text
        .replace("named-table ::= qualified-name ", "named-table ::= (table-name | identifier) ");
    let (mut tables, mut columns) = (Vec::new(), Vec::new());
    for table in TABLES {
        let rule = format!("table-{}", table.replace('_', "-"));
        let _ = writeln!(text, "{rule} ::= \"{table}\" ws");
        tables.push(rule);
        for part in PARTS {
            for field in FIELDS {
                let name = format!("{table}_{part}_{field}");
                let rule = format!("column-{}", name.replace('_', "-"));
                let _ = writeln!(text, "{rule} ::= \"{name}\" ws");
                columns.push(rule);
            }
        }
    }
    let _ = writeln!(
        text,
        "table-name ::= {}\ncolumn-name ::= {}",
        tables.join(" | "),
        columns.join(" | ")
    );
    text
}

#[test]
fn sql_over_a_catalogue_is_recognised() {
    let text = catalogue();
    if let Ok(path) = std::env::var("LOUVER_CATALOGUE") {
        std::fs::write(&path, &text).unwrap_or_else(|e| panic!("{path}: {e}"));
    }
    let rules = text.matches("::=").count();
    assert!(rules > 3_000, "{rules}");
    let mut sql = Language::compile(&text);
    sql.accepts(
        "SELECT orders_billing_amount, o.orders_target_name FROM orders AS o WHERE orders.orders_home_status = 'paid'",
    );
    sql.rejects("SELECT orders_billing_price FROM orders", "SELECT orders_billing_price ");
}

const DOCUMENTS: [&str; 4] = [
    r#"{"name": "Ærø", "size": [1, -0.5e+10, 20], "open": true, "of": {"x": null, "": {}}}"#,
    "[\n  [ ],\r\n\t{ \"a\\n\\u00e9\\ud83d\\ude00\" : false }\n]",
    "\"plain \\\\ text \\\" \\/ \\uD7ff\"",
    "-12.50E-3",
];

/// Grammars of JSON: from a schema, from EBNF, and from Lark.
fn json() -> Vec<(&'static str, Grammar)> {
    let limits = Limits::default();
    let schema = Json::parse("true", &limits).expect("JSON");
    let options =
        json_schema::SchemaOptions::default().with_exponents(json_schema::Exponents::Allowed);
    let schema = json_schema::lower(&schema, &options, &limits).expect("a grammar");
    let lark = lark::lower(&read("lark/json.lark"), &Default::default(), &limits)
        .unwrap_or_else(|e| panic!("{e}"));
    vec![("json_schema", schema), ("ebnf", lower(&read("ebnf/json.ebnf"))), ("lark", lark.grammar)]
}

#[test]
fn json_masks_are_equal_from_every_front_end() {
    let words: Vec<&[u8]> = vec![
        b"\": ",
        b"\", \"",
        b"{\"",
        b"\"}",
        b"[\n",
        b"true",
        b"}, {",
        b"name",
        b" \"a",
        b"\\u",
        b"\\ud83d",
        b"\\ude00",
        b"e+10",
        b"00",
        b"\xc3",
        b"\xc3\x86",
        b"\xa9",
        b"  ",
        b"\n  ",
        b"]]",
        b"null}",
        b"\x00",
        b"\"\"",
    ];
    let grammars = json();
    let constraints: Vec<Constraint> = grammars
        .iter()
        .map(|(_, grammar)| {
            let engine = Engine::new(Vocabulary::toy(&words).into(), EngineOptions::default());
            engine.compile(grammar).expect("a constraint")
        })
        .collect();
    let mut masks = 0;
    for document in DOCUMENTS {
        let mut matchers: Vec<_> = constraints.iter().map(Constraint::matcher).collect();
        for byte in document.bytes().chain([0]) {
            let rows: Vec<Vec<u32>> = matchers
                .iter_mut()
                .map(|matcher| {
                    let mut mask = vec![0; matcher.vocab().mask_words()];
                    matcher.fill_mask(&mut mask);
                    mask
                })
                .collect();
            for (i, row) in rows.iter().enumerate() {
                let taken = matchers[i].tokens().len();
                assert_eq!(
                    row,
                    &rows[0],
                    "{} differs after {:?}",
                    grammars[i].0,
                    &document[..taken]
                );
            }
            masks += 1;
            if byte != 0 {
                let token = TokenId::from_raw(u32::from(byte));
                matchers
                    .iter_mut()
                    .for_each(|matcher| matcher.advance(token).expect("JSON goes on"));
            }
        }
        assert!(matchers.iter_mut().all(|matcher| matcher.is_complete()), "{document}");
    }
    assert!(masks > 150);
}
