//! A small shop in PostgreSQL, and transactions that go on in it: what the tests of that source copy.
//!
//! The file stands alone, so that the driver's own tests can take it in too.

/// Its tables: one with the usual replica identity, one with the whole row.
pub const TABLES: &str = "
    CREATE TABLE public.orders (
        id bigint PRIMARY KEY, customer text, total numeric(12,2), placed_at timestamptz, paid boolean, note text);
    CREATE TABLE public.lines (order_id bigint, line int, sku text, quantity int, PRIMARY KEY (order_id, line));
    ALTER TABLE public.lines REPLICA IDENTITY FULL;";

/// A small generator of random numbers with a fixed seed: a failure can be had again.
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A transaction: rows made, changed, moved to other keys, deleted; sometimes rolled back, sometimes large, sometimes a TRUNCATE.
pub fn transaction(random: &mut Random) -> String {
    let mut statements = vec!["BEGIN".to_owned()];
    for _ in 0..=random.below(4) {
        let (id, other, many) = (random.below(400), random.below(400), random.below(300) + 1);
        statements.push(match random.below(12) {
            0..=3 => format!(
                "INSERT INTO orders VALUES ({id}, 'c{other}', {other}.25, now(), {}, NULL) ON CONFLICT (id) DO UPDATE SET total = orders.total + 1",
                id % 2 == 0
            ),
            4 | 5 => format!("UPDATE orders SET note = 'n{other}', paid = NOT paid WHERE id BETWEEN {id} AND {id} + 5"),
            6 => format!("UPDATE orders SET id = id + 1000 WHERE id = {id} AND NOT EXISTS (SELECT FROM orders o WHERE o.id = {id} + 1000)"),
            7 => format!("DELETE FROM orders WHERE id BETWEEN {id} AND {id} + 3"),
            8 => format!(
                "INSERT INTO lines SELECT {id}, n, 'sku' || n, n FROM generate_series(1, {many}) n ON CONFLICT (order_id, line) DO UPDATE SET quantity = lines.quantity + 1"
            ),
            9 => format!("UPDATE lines SET order_id = order_id + 1000 WHERE order_id = {id} AND NOT EXISTS (SELECT FROM lines l WHERE l.order_id = {id} + 1000)"),
            10 => format!("DELETE FROM lines WHERE order_id = {id} AND line % 2 = 0"),
            _ => match random.below(20) {
                0 => "TRUNCATE lines".to_owned(),
                _ => format!("SAVEPOINT s; DELETE FROM orders WHERE id > {id}; ROLLBACK TO s"),
            },
        });
    }
    statements.push(if random.below(10) == 0 { "ROLLBACK" } else { "COMMIT" }.to_owned());
    statements.join("; ") + ";\n"
}
