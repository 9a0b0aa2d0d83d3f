-- A small shop: four tables, and a procedure that trades in it. Written for PostgreSQL 14 and later.
CREATE SCHEMA shop;

CREATE TYPE shop.status AS ENUM ('placed', 'paid', 'shipped', 'returned');

CREATE TABLE shop.customers (
    id bigint PRIMARY KEY, name text NOT NULL, email text, born date, settings jsonb, created_at timestamptz NOT NULL);
CREATE TABLE shop.products (
    sku text PRIMARY KEY, title text NOT NULL, price numeric(10,2) NOT NULL, tags text[], weight double precision);
CREATE TABLE shop.orders (
    id bigint PRIMARY KEY, customer bigint NOT NULL, status shop.status NOT NULL, total numeric(12,2) NOT NULL,
    placed_at timestamptz NOT NULL, note text);
CREATE TABLE shop.order_lines (
    order_id bigint, line int, sku text NOT NULL, quantity int NOT NULL, price numeric(10,2) NOT NULL, PRIMARY KEY (order_id, line));

INSERT INTO shop.customers
    SELECT n, 'Customer ' || n, 'c' || n || '@example.com', DATE '1950-01-01' + n % 18000, jsonb_build_object('mails', n % 2 = 0),
           TIMESTAMPTZ '2026-01-01 00:00:00Z' + n * INTERVAL '1 minute'
    FROM generate_series(1, 5000) n;
INSERT INTO shop.products
    SELECT 'SKU-' || lpad(n::text, 4, '0'), 'Product ' || n, n * 0.75, ARRAY['new', 'tag ' || n % 7], n / 10.0
    FROM generate_series(1, 500) n;
INSERT INTO shop.orders
    SELECT n, 1 + n % 5000, 'placed', n % 900 + 0.25, TIMESTAMPTZ '2026-02-01 00:00:00Z' + n * INTERVAL '10 seconds', NULL
    FROM generate_series(1, 20000) n;
INSERT INTO shop.order_lines
    SELECT n, line, 'SKU-' || lpad((1 + (n * line) % 500)::text, 4, '0'), 1 + n % 5, (n % 900) * 0.75
    FROM generate_series(1, 20000) n, generate_series(1, 2) line;

-- Trades until the time is over: orders come, are paid, are shipped, are returned and deleted; prices change; customers move to
-- other numbers. Each is a transaction of its own.
CREATE PROCEDURE shop.trade(seconds double precision) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + seconds * INTERVAL '1 second';
    next bigint := (SELECT max(id) FROM shop.orders);
    chosen bigint;
BEGIN
    WHILE clock_timestamp() < until LOOP
        PERFORM pg_sleep(0.01);
        next := next + 1;
        chosen := 1 + floor(random() * next)::bigint;
        INSERT INTO shop.orders VALUES (next, 1 + next % 5000, 'placed', 0, now(), NULL);
        INSERT INTO shop.order_lines VALUES (next, 1, 'SKU-' || lpad((1 + next % 500)::text, 4, '0'), 1, 9.75);
        UPDATE shop.orders SET total = 9.75 WHERE id = next;
        COMMIT;
        UPDATE shop.orders SET status = 'paid', note = 'paid at ' || now() WHERE id = chosen AND status = 'placed';
        COMMIT;
        UPDATE shop.orders SET status = 'shipped' WHERE id = chosen - 7 AND status = 'paid';
        COMMIT;
        DELETE FROM shop.order_lines WHERE order_id = chosen - 100;
        DELETE FROM shop.orders WHERE id = chosen - 100;
        COMMIT;
        UPDATE shop.products SET price = round(price * 1.01, 2) WHERE sku = 'SKU-' || lpad((1 + chosen % 500)::text, 4, '0');
        COMMIT;
        UPDATE shop.customers SET id = id + 100000 WHERE id = chosen % 5000 AND chosen % 50 = 0;
        COMMIT;
    END LOOP;
END $$;
