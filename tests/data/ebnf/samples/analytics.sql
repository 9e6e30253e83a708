-- orders that were paid late, with the customer's usual delay
SELECT o.id, c.name AS customer, o.due_at, p.paid_at, p.paid_at - o.due_at AS delay,
       AVG(p.paid_at - o.due_at) OVER (PARTITION BY o.customer_id ORDER BY o.due_at ROWS BETWEEN 10 PRECEDING AND 1 PRECEDING) AS usual_delay
FROM invoices o
JOIN customers c ON c.id = o.customer_id
JOIN payments p ON p.invoice_id = o.id AND p.state = 'settled'
WHERE p.paid_at > o.due_at
  AND o.due_at BETWEEN DATE '2025-01-01' AND DATE '2025-06-30'
  AND c.country IN ('DE', 'FR', 'NL', 'PL')
ORDER BY delay DESC, c.name
LIMIT 50;
---
WITH sessions AS (
    SELECT e.user_id, e.session_id, MIN(e.at) AS began, MAX(e.at) AS ended, COUNT(*) AS events,
           COUNT(*) FILTER (WHERE e.kind = 'purchase') AS purchases
    FROM tracking.events e
    WHERE e.at >= CURRENT_DATE - INTERVAL '30 days'
    GROUP BY e.user_id, e.session_id
), daily AS (
    SELECT date_trunc('day', s.began) AS day, COUNT(DISTINCT s.user_id) AS users, COUNT(*) AS sessions,
           SUM(CASE WHEN s.purchases > 0 THEN 1 ELSE 0 END) AS converted,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY s.ended - s.began) AS median_length
    FROM sessions s
    GROUP BY date_trunc('day', s.began)
)
SELECT d.day, d.users, d.sessions, d.converted, ROUND(100.0 * d.converted / d.sessions, 2) AS conversion_percent,
       d.users - LAG(d.users, 7) OVER (ORDER BY d.day) AS change_to_last_week, d.median_length
FROM daily d
ORDER BY d.day;
---
SELECT w.name AS warehouse, p.sku, p.title, s.quantity, s.reserved, s.quantity - s.reserved AS available,
       CASE
           WHEN s.quantity - s.reserved <= 0 THEN 'out of stock'
           WHEN s.quantity - s.reserved < p.reorder_level THEN 'reorder'
           ELSE 'fine'
       END AS state
FROM stock s
INNER JOIN products p ON p.id = s.product_id
INNER JOIN warehouses w ON w.id = s.warehouse_id
WHERE p.discontinued = FALSE
  AND (p.category LIKE 'garden/%' OR p.category LIKE 'tools/%')
  AND NOT EXISTS (SELECT 1 FROM shipments h WHERE h.product_id = p.id AND h.warehouse_id = w.id AND h.arrives_at < now() + INTERVAL '2 days')
ORDER BY w.name, available, p.sku;
---
/* teams without a review in the last quarter */
SELECT t.id, t.name, COALESCE(l.name, 'nobody') AS lead, MAX(r.created_at) AS last_review
FROM teams t
LEFT JOIN people l ON l.id = t.lead_id
LEFT JOIN reviews r ON r.team_id = t.id
GROUP BY t.id, t.name, l.name
HAVING MAX(r.created_at) IS NULL OR MAX(r.created_at) < date_trunc('quarter', now())
ORDER BY last_review NULLS FIRST, t.name;
---
WITH RECURSIVE managers(id, name, manager_id, depth, path) AS (
    SELECT e.id, e.name, e.manager_id, 1, ARRAY[e.id]
    FROM employees e
    WHERE e.manager_id IS NULL
    UNION ALL
    SELECT e.id, e.name, e.manager_id, m.depth + 1, m.path || e.id
    FROM employees e
    JOIN managers m ON e.manager_id = m.id
    WHERE NOT e.id = ANY (m.path)
)
SELECT m.depth, COUNT(*) AS people, MIN(m.name) AS first_name, MAX(m.name) AS last_name
FROM managers m
GROUP BY m.depth
ORDER BY m.depth;
---
SELECT a.account_number, a.currency, SUM(t.amount) AS balance, COUNT(t.id) AS transactions
FROM accounts a
LEFT JOIN transactions t ON t.account_id = a.id AND t.booked_at <= TIMESTAMP '2025-03-31 23:59:59'
WHERE a.closed_at IS NULL OR a.closed_at > TIMESTAMP '2025-03-31 23:59:59'
GROUP BY a.account_number, a.currency
HAVING SUM(t.amount) < 0
UNION ALL
SELECT 'total', a.currency, SUM(t.amount), COUNT(t.id)
FROM accounts a
JOIN transactions t ON t.account_id = a.id
WHERE t.booked_at <= TIMESTAMP '2025-03-31 23:59:59'
GROUP BY a.currency
ORDER BY 2, 1;
---
SELECT s.sensor_id, s.place->>'room' AS room, g.bucket, AVG(m.value) AS average, MIN(m.value) AS least, MAX(m.value) AS most
FROM sensors s
CROSS JOIN LATERAL generate_series(1, 24) AS g(bucket)
LEFT JOIN measurements m ON m.sensor_id = s.sensor_id AND extract(hour FROM m.taken_at) = g.bucket
WHERE s.place @> $1 AND s.kind = :kind AND s.active
GROUP BY s.sensor_id, s.place->>'room', g.bucket
ORDER BY s.sensor_id, g.bucket
---
SELECT b.title, string_agg(DISTINCT a.name, ', ' ORDER BY a.name) AS authors, b.pages, b.published,
       CAST(b.price * (1 - COALESCE(d.percent, 0) / 100.0) AS numeric(8, 2)) AS price
FROM books b
JOIN book_authors ba USING (book_id)
JOIN authors a USING (author_id)
LEFT JOIN discounts d ON d.book_id = b.book_id AND CURRENT_DATE BETWEEN d.starts AND d.ends
WHERE b.language = 'en' AND b.pages > 120 AND lower(b.title) NOT LIKE '%draft%'
GROUP BY b.book_id, b.title, b.pages, b.published, b.price, d.percent
ORDER BY b.published DESC
OFFSET 40 ROWS FETCH NEXT 20 ROWS ONLY;
---
SELECT region, product_line, SUM(net) AS net, GROUPING(region) AS all_regions
FROM sales.lines
WHERE sold_on >= DATE '2024-07-01' AND sold_on < DATE '2025-07-01'
GROUP BY ROLLUP (region, product_line)
ORDER BY region, product_line;
---
SELECT x.id, x.score, x.band
FROM (
    SELECT u.id, u.score, NTILE(4) OVER (ORDER BY u.score DESC) AS band
    FROM users u
    WHERE u.score IS NOT NULL AND u.created_at < now() - INTERVAL '1 year'
) x
WHERE x.band = 1 AND x.id NOT IN (SELECT b.user_id FROM bans b WHERE b.ends_at IS NULL)
ORDER BY x.score DESC, x.id
LIMIT 25
