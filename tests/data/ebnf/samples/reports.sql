-- revenue by month and region, with the share of each
WITH monthly AS (
    SELECT date_trunc('month', o.created_at) AS month, c.region, SUM(i.quantity * i.unit_price) AS revenue
    FROM orders o
    JOIN order_items i ON i.order_id = o.id
    LEFT JOIN customers AS c ON c.id = o.customer_id AND c.deleted_at IS NULL
    WHERE o.status IN ('paid', 'shipped', 'it''s open') AND o.created_at >= DATE '2024-01-01'
    GROUP BY 1, c.region
    HAVING COUNT(*) > 10
), ranked AS (
    SELECT m.*, RANK() OVER (PARTITION BY month ORDER BY revenue DESC NULLS LAST) AS place,
        revenue / NULLIF(SUM(revenue) OVER (PARTITION BY month), 0) AS share
    FROM monthly m
)
SELECT month, region, ROUND(revenue::numeric(12, 2), 2) AS revenue, place,
    CASE WHEN share > 0.5 THEN 'dominant' WHEN share BETWEEN 0.1 AND 0.5 THEN 'large' ELSE 'small' END AS class
FROM ranked
WHERE place <= 5
ORDER BY month DESC, place ASC
LIMIT 100 OFFSET 20;
---
SELECT DISTINCT e.name, e."hired on", COALESCE(m.name, '(none)') manager
FROM hr.employees e LEFT OUTER JOIN hr.employees m ON e.manager_id = m.id
WHERE e.salary > ALL (SELECT AVG(x.salary) FROM hr.employees x GROUP BY x.department_id)
   OR NOT EXISTS (SELECT 1 FROM hr.reviews r WHERE r.employee_id = e.id AND r.score < 3.5e0)
   AND e.email NOT LIKE '%@example.com' ESCAPE '\'
ORDER BY 1;
---
with recursive tree(id, parent, depth, path) as (
  select c.id, c.parent_id, 0, cast(c.name as text) from categories c where c.parent_id is null
  union all
  select c.id, c.parent_id, t.depth + 1, t.path || ' > ' || c.name
  from categories c inner join tree t on t.id = c.parent_id
  where t.depth < 12
)
select left_pad('', depth * 2) || path as label, count(*) over () total from tree order by path
---
SELECT extract(year FROM t.at) AS y, count(*) FILTER (WHERE t.kind = 'x') AS xs, string_agg(t.tag, ', ' ORDER BY t.tag) AS tags,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY t.latency) AS p95, t.payload->'user'->>'id' AS uid
FROM events AS t TABLESAMPLE BERNOULLI (5) REPEATABLE (42), LATERAL generate_series(1, 3) AS s(n)
WHERE t.at > now() - INTERVAL '7 days' AND t.payload @> $1 AND t.tags[1] <> ALL (ARRAY['a', 'b'])
GROUP BY GROUPING SETS ((1), ROLLUP (t.kind, t.payload->'user'->>'id'), ())
FETCH FIRST 10 ROWS ONLY
FOR UPDATE OF t SKIP LOCKED
---
(SELECT id, price FROM a EXCEPT SELECT id, price FROM b) UNION ALL SELECT * FROM (VALUES (1, 2.5), (2, -3)) AS v(id, price)
INTERSECT SELECT p.id, p.price * 1.19 FROM products p CROSS JOIN rates NATURAL LEFT JOIN taxes
WHERE (p.id, p.price) IN (SELECT q.id, q.price FROM quotes q) /* both */ AND p.name ILIKE :pattern
---
SELECT u.id, row_number() OVER w, lag(u.score, 1, 0) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES)
FROM users u
WHERE u.active IS NOT FALSE AND upper(trim(BOTH ' ' FROM u.name)) SIMILAR TO '[A-M]%' AND u.seen AT TIME ZONE 'UTC' < CURRENT_TIMESTAMP
WINDOW w AS (PARTITION BY u.team ORDER BY u.score DESC)
