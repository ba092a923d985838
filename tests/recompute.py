#!/usr/bin/env python3
"""Recomputes every figure of summary.csv from results.csv, without a line of mcp-census: by the definitions of the
report alone. Usage: recompute.py RUN. Prints what differs, and exits 1 where anything does.

The one thing it takes on trust is whose platform a site is on (the public suffix list is not in it): the operators it
finds in the table of platforms are the ends of names that it sorts the sites by.
"""

import csv
import json
import math
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

Z = 1.959963984540054
UNSEEN = ("unmeasured", "unprobeable")
VERDICTS = ["working", "gated", "faulty", "not_mcp", "down", "unmeasured", "unprobeable"]
OUTCOMES = """success jsonrpc_error protocol_violation auth_required payment_required forbidden html_page non_envelope
invalid_json empty_body not_found method_not_allowed redirect http_error rate_limited timeout dns_failure
connect_failure tls_failure connection_dropped unprobeable unmeasured""".split()
NEVER = ("rate_limited", "unprobeable", "unmeasured")
LAYERS = ["asked", "resolved", "connected", "tls", "http", "json", "envelope", "mcp", "open"]
BOUNDS = [50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000]


def wilson(count, total):
    if total == 0:
        return None
    p, spread = count / total, Z * Z / total
    centre = p + spread / 2
    reach = Z * math.sqrt(p * (1 - p) / total + spread / (4 * total))
    low = 0.0 if count == 0 else max(0.0, (centre - reach) / (1 + spread))
    high = 1.0 if count == total else min(1.0, (centre + reach) / (1 + spread))
    return low, high


def student(freedom):
    """Student's 97.5 % quantile, by Cornish and Fisher's expansion."""
    if freedom < 3:
        return {1: 12.706204736174698, 2: 4.302652729749464}[freedom]
    g = [(Z ** 3 + Z) / 4, (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / 96,
         (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / 384]
    return Z + sum(it / freedom ** (at + 1) for at, it in enumerate(g))


class Row(dict):
    """A row of results.csv; a cell is text, as it stands there."""

    def __getattr__(self, name):
        return self[name]

    @property
    def seen(self):
        return self.verdict not in UNSEEN

    @property
    def found(self):
        return sorted({it.split(":", 1)[0] for it in self.findings.split(";") if it})


def number(text):
    """A number that a spreadsheet would take for a formula stands there as it is; text has a quote in front."""
    return int(text) if re.fullmatch(r"-?\d+", text) else None


class Report:
    def __init__(self, run):
        self.run = run
        with open(run / "results.csv", newline="", encoding="utf-8") as file:
            self.rows = [Row(it) for it in csv.DictReader(file)]
        manifest = run / "manifest.json"
        self.manifest = json.loads(manifest.read_text()) if manifest.exists() else None
        self.told = {}
        with open(run / "summary.csv", newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                table = self.told.setdefault(line["table"], {})
                assert line["key"] not in table, f"{line['table']} has {line['key']} twice"
                table[line["key"]] = (line["count"], line["share"], line["low"], line["high"], line["denominator"])
        self.own = {}
        self.seen = [row for row in self.rows if row.seen]
        self.working = sum(row.verdict == "working" for row in self.rows)

    def put(self, table, key, count, of=None):
        interval = None if of is None else wilson(count, of)
        cells = ("", "", "", "") if interval is None else (
            f"{count / of:.6f}", f"{interval[0]:.6f}", f"{interval[1]:.6f}", str(of))
        lines = self.own.setdefault(table, {})
        assert key not in lines, f"{table}: {key} twice"
        lines[key] = (str(count), *cells)

    def put_not_measured(self, table):
        rows = sum(row.verdict == "unmeasured" for row in self.rows)
        of = len(self.seen) + rows
        bounds = [(self.working / of if of else 0.0), ((self.working + rows) / of if of else 0.0)]
        self.own.setdefault(table, {})["not_measured"] = (
            str(rows), "", f"{bounds[0]:.6f}", f"{bounds[1]:.6f}", str(of))

    # Tables, in the order of the report.

    def apart(self, outcome):
        seen = any(row.seen and row.outcome == outcome for row in self.rows)
        return outcome if outcome in NEVER and not seen else f"{outcome}/unmeasured"

    def outcomes(self):
        counts = Counter((row.outcome, row.seen) for row in self.rows)
        for outcome in OUTCOMES:
            if counts[outcome, True] or outcome not in NEVER:
                self.put("outcomes", outcome, counts[outcome, True], len(self.seen))
            if counts[outcome, False] or outcome in NEVER:
                self.put("outcomes", self.apart(outcome), counts[outcome, False])

    def verdicts(self):
        counts = Counter(row.verdict for row in self.rows)
        for verdict in VERDICTS:
            self.put("verdicts", verdict, counts[verdict], None if verdict in UNSEEN else len(self.seen))

    def layer(self, row):
        """How far the row shows its endpoint to have got; its own words for it, by the README's table of layers."""
        answered = row.http_status != ""
        by_body = "json" if row.body_kind == "json" else "http"
        outcome, verdict, detail = row.outcome, row.verdict, row.detail
        if outcome == "success":
            return "open" if verdict == "working" else "mcp"
        if outcome == "jsonrpc_error":
            return {"working": "open", "gated": "mcp"}.get(verdict, "envelope")
        if outcome == "protocol_violation":
            unread = ("body_over_limit", "endpoint_origin_mismatch", "endpoint_invalid")
            return "http" if detail in unread else "envelope"
        if outcome == "non_envelope":
            return "json"
        if outcome in ("auth_required", "payment_required", "forbidden", "not_found", "method_not_allowed",
                       "http_error", "rate_limited"):
            return by_body
        if outcome in ("html_page", "invalid_json", "empty_body", "redirect"):
            return "http"
        if outcome == "timeout":
            return {"connect": "resolved", "tls": "connected", "first_byte": "tls"}.get(detail, "http")
        if outcome == "connect_failure":
            return "resolved"
        if outcome == "tls_failure":
            return "connected"
        if outcome == "connection_dropped":
            late = detail in ("mid_body", "incomplete_body", "sse_closed_before_response")
            return "http" if late or answered else "tls"
        return "asked"

    def funnel(self):
        depths = [LAYERS.index(self.layer(row)) for row in self.seen]
        for depth, layer in enumerate(LAYERS):
            self.put("funnel", layer, sum(it >= depth for it in depths), len(self.seen))

    def details(self):
        counts = Counter((row.outcome, row.seen, row.detail.split("=", 1)[0]) for row in self.rows)
        for (outcome, seen, detail), count in counts.items():
            if seen:
                self.put("details", f"{outcome}/{detail}", count, len(self.seen))
            else:
                self.put("details", f"{self.apart(outcome)}/{detail}", count)

    def family(self, row):
        if row.hint:
            return row.hint
        words, length = [], 0
        for word in row.rpc_message.removeprefix("'").split():
            if "://" in word:
                word = "url"
            elif not re.search(r"[0-9]", word):
                word = word.lower()
            elif len(word.encode()) >= 8:
                word = "#"
            else:
                word = re.sub(r"[0-9]+", "#", word.lower())
            length += len(word) + 1
            words.append(word)
            if length > 60:
                break
        text = " ".join(words) or "no message"
        return text if len(text) <= 60 else text[:60].rstrip() + "..."

    def jsonrpc_errors(self):
        errors = [row for row in self.seen if row.outcome == "jsonrpc_error"]
        code = lambda row: row.rpc_code or row.detail
        for key, count in Counter(map(code, errors)).items():
            self.put("jsonrpc_errors", key, count, len(self.seen))
        families = Counter((row.http_status or "none", code(row), self.family(row)) for row in errors)
        self.cut("jsonrpc_error_messages", families, 100, len(self.seen), "others/others/others")

    def cut(self, table, counts, keep, of, others):
        """The largest first, ties by key; what comes after so many is one line."""
        key = lambda it: tuple((number(part), "") if number(part) is not None else (0, part) for part in it[0]) \
            if isinstance(it[0], tuple) else it[0]
        ordered = sorted(sorted(counts.items(), key=key), key=lambda it: -it[1])
        for name, count in ordered[:keep]:
            self.put(table, "/".join(name) if isinstance(name, tuple) else name, count, of)
        if ordered[keep:]:
            self.put(table, others, sum(count for _, count in ordered[keep:]), of)

    def http_statuses(self):
        counts = Counter((row.http_status, row.seen) for row in self.rows)
        for (status, seen), count in counts.items():
            if seen:
                self.put("http_statuses", status or "none", count, len(self.seen))
            elif status:
                self.put("http_statuses", f"{status}/unmeasured", count)

    def protocol_versions(self):
        versions = Counter(row.protocol_version for row in self.seen if row.protocol_version)
        self.cut("protocol_versions", versions, 30, sum(versions.values()), "others")

    def era_transport(self):
        kinds = Counter((row.declared_transport or "none", row.transport or "none", row.era) for row in self.seen)
        for key, count in kinds.items():
            self.put("era_transport", "/".join(key), count, len(self.seen))

    def authentication(self):
        gates = Counter()
        statuses = {"auth_required": "401", "payment_required": "402", "forbidden": "403"}
        instead = {"auth_in_jsonrpc_not_401": 401, "auth_with_wrong_status": 401, "payment_in_jsonrpc_not_402": 402}
        for row in self.seen:
            if row.outcome in statuses:
                gates[statuses[row.outcome], row.detail] += 1
            for check in row.found:
                if check in instead:
                    gates[f"should_be_{instead[check]}", check] += 1
        for key, count in gates.items():
            self.put("authentication", "/".join(key), count, len(self.seen))

    def latency(self):
        times = defaultdict(list)
        for row in self.seen:
            if row.total_ms:
                for verdict in (row.verdict, "all"):
                    times[verdict].append(min(60000, int(float(row.total_ms))))
        times.setdefault("all", [])
        for verdict, ms in times.items():
            ms.sort()
            self.put("latency", f"{verdict}/rows", len(ms))
            for name, percent in (("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)):
                if ms:
                    self.put("latency", f"{verdict}/{name}", ms[max(1, -(-len(ms) * percent // 100)) - 1])
        answered = [it for verdict, ms in times.items() if verdict not in ("down", "all") for it in ms]
        floor = -1
        for bound in BOUNDS:
            count = sum(floor < it < bound for it in answered)
            self.put("latency_histogram", str(bound), count, len(answered))
            floor = bound - 1
        self.put("latency_histogram", "longer", sum(it >= BOUNDS[-1] for it in answered), len(answered))

    def units(self):
        def unit(name, of, listed=None):
            groups = defaultdict(list)
            for at, row in enumerate(self.rows):
                if of(at, row):
                    groups[of(at, row)].append(row)
            seen = sum(any(row.seen for row in it) for it in groups.values())
            works = sum(any(row.verdict == "working" for row in it) for it in groups.values())
            self.put("units", f"{name}/listed", len(groups) if listed is None else listed)
            self.put("units", f"{name}/measured", seen)
            self.put("units", f"{name}/working", works, seen)
        unit("rows", lambda at, row: at + 1)
        unit("endpoints", lambda _, row: row.endpoint, self.manifest and self.manifest["endpoints"])
        unit("hosts", lambda _, row: row.host)
        unit("sites", lambda _, row: row.site)

    def operator(self, site):
        """The operator of a site: the longest name in the table of platforms that it ends in."""
        return self.operators.get(site, site)

    def find_operators(self):
        named = {key.rsplit("/", 1)[0] for key in self.told.get("platforms", {}) if "/" in key}
        self.operators = {}
        for site in {row.site for row in self.rows if row.site}:
            ends = [name for name in named if site == name or site.endswith("." + name)]
            self.operators[site] = max(ends, key=len) if ends else site

    def concentration(self):
        self.put("concentration", "nothing", self.working, len(self.seen))
        for kind, of in (("site", lambda row: row.site), ("operator", lambda row: self.operator(row.site))):
            seen, works = Counter(), Counter()
            for row in self.rows:
                if row.site:
                    seen[of(row)] += row.seen
                    works[of(row)] += row.verdict == "working"
            ordered = sorted(seen, key=lambda it: (-seen[it], it))
            for without in (1, 2, 5):
                gone = ordered[:without]
                key = f"{without} {kind}" + ("" if without == 1 else "s")
                self.put("concentration", key, self.working - sum(works[it] for it in gone),
                         len(self.seen) - sum(seen[it] for it in gone))

    def platforms(self):
        of = defaultdict(lambda: [0, set(), 0, 0])
        for row in self.rows:
            if row.site:
                it = of[self.operator(row.site)]
                it[0] += 1
                it[1].add(row.site)
                it[2] += row.seen
                it[3] += row.verdict == "working"
        ordered = sorted(of.items(), key=lambda it: (-it[1][0], it[0]))
        lines = [(name, rows, len(sites), seen, works) for name, (rows, sites, seen, works) in ordered[:20]]
        rest = [it for _, it in ordered[20:]]
        if rest:
            lines.append(("others", sum(it[0] for it in rest), sum(len(it[1]) for it in rest),
                          sum(it[2] for it in rest), sum(it[3] for it in rest)))
        for name, rows, sites, seen, works in lines:
            self.put("platforms", f"{name}/rows", rows)
            self.put("platforms", f"{name}/sites", sites)
            self.put("platforms", f"{name}/measured", seen)
            self.put("platforms", f"{name}/working", works, seen)

    def findings(self):
        for check, count in Counter(it for row in self.rows for it in row.found).items():
            self.put("findings", check, count, len(self.rows))

    def mechanism(self, row):
        found = row.found
        if row.outcome == "unprobeable":
            return {"template": "template_left_in", "userinfo": "credentials_listed", "excluded": None,
                    "robots": None}.get(row.detail, "unusable_address")
        if row.outcome == "dns_failure":
            return "dead_name" if row.detail in ("nxdomain", "nodata") else None
        if row.outcome == "tls_failure":
            certificate = ("expired", "not_yet_valid", "unknown_issuer", "wrong_host", "revoked", "bad_certificate")
            return "tls_certificate" if row.detail in certificate else None
        if not row.seen:
            return None
        if row.hint == "deployment_gone" or "platform_app_missing" in found:
            return "deployment_gone"
        if row.outcome == "not_found":
            return "not_found"
        told = (row.declared_transport, row.transport)
        if told == ("sse", "streamable-http"):
            return "is_streamable_http"
        if told == ("streamable-http", "sse"):
            return "is_sse"
        lives = row.verdict in ("working", "gated")
        if "redirect_target_would_succeed" in found or lives and "redirected:308" in row.findings.split(";"):
            return "moved"
        if "listed_as_plain_http" in found:
            return "listed_as_http"
        return "credentials_listed" if "credentials_in_listing" in found else None

    def rows_to_act_on(self):
        groups, lost, gone, seen = Counter(), Counter(), Counter(), Counter()
        for row in self.rows:
            mechanism = self.mechanism(row)
            if row.host:
                seen[row.host] += row.seen
                lost[row.host] += mechanism == "not_found"
                gone[row.host] += mechanism == "deployment_gone"
            if mechanism is None or mechanism == "not_found":
                continue
            if mechanism in ("template_left_in", "unusable_address", "credentials_listed"):
                place = "the list"
            elif mechanism == "tls_certificate":
                place = row.host
            elif mechanism == "deployment_gone":
                place = self.operator(row.site)
            else:
                place = row.site
            groups[mechanism, place or "the list"] += 1
        for host, count in lost.items():
            if count:
                whole = count + gone[host] == seen[host]
                groups["host_not_found" if whole else "path_not_found", host] += count
        alone = Counter()
        order = """template_left_in unusable_address credentials_listed dead_name tls_certificate deployment_gone
            host_not_found path_not_found is_streamable_http is_sse moved listed_as_http""".split()
        ordered = sorted(groups.items(), key=lambda it: (-it[1], order.index(it[0][0]), it[0][1]))
        for at, ((mechanism, place), count) in enumerate(ordered):
            if at < 50 and (count > 1 or place == "the list"):
                self.put("rows_to_act_on", f"{mechanism}/{place}", count, len(self.rows))
            else:
                alone[mechanism] += count
        for mechanism, count in alone.items():
            self.put("rows_to_act_on", f"{mechanism}/others", count, len(self.rows))

    def not_measured(self):
        reasons = Counter()
        for row in self.rows:
            if not row.seen:
                verdict = "unprobeable" if row.outcome == "unprobeable" else "unmeasured"
                reasons[verdict, row.outcome, row.detail.split("=", 1)[0]] += 1
        for key, count in reasons.items():
            self.put("not_measured", "/".join(key), count, len(self.rows))

    # Tables that not every run has.

    def disagreement(self):
        places = [name for name in self.rows[0] if name.startswith("at_")]
        said = [[row[it] for it in places] for row in self.rows if row[places[0]]]
        several = [it for it in said if sum(verdict not in UNSEEN for verdict in it) > 1]
        differs = lambda it: len({verdict for verdict in it if verdict not in UNSEEN}) > 1
        agree = sum(not differs(it) for it in several)
        self.put("disagreement", "all that measured it agree", agree, len(several))
        self.put("disagreement", "they disagree", len(several) - agree, len(several))
        for pattern, count in Counter(tuple(it) for it in several if differs(it)).items():
            key = ", ".join(f"{place[3:]}: {verdict}" for place, verdict in zip(places, pattern))
            self.put("disagreement", key, count, len(several))
        for at, place in enumerate(places):
            seen = [it[at] for it in said if it[at] not in UNSEEN]
            self.put("disagreement", f"{place[3:]} alone: working", seen.count("working"), len(seen))

    def control(self):
        with open(self.run / "control" / "results.csv", newline="", encoding="utf-8") as file:
            again = {row["endpoint"]: Row(row) for row in csv.DictReader(file)}
        pairs = []
        for row in self.rows:
            if row.endpoint in again:
                pairs.append((row, again.pop(row.endpoint)))
        measured = [(one, other) for one, other in pairs if other.seen]
        for aspect in ("verdict", "outcome", "protocol_version", "server_name"):
            same = sum(one[aspect] == other[aspect] for one, other in measured)
            self.put("control", f"{aspect}/the same", same, len(measured))
        moved = Counter((one.verdict, other.verdict) for one, other in measured if one.verdict != other.verdict)
        for (one, other), count in moved.items():
            self.put("control", f"verdict/{one}, then {other}", count, len(measured))
        self.put("control", "verdict/not measured again", len(pairs) - len(measured))

    def estimates(self):
        """The ratio of weighted totals; its variance by linearization, in two stages; Wilson's interval."""
        by = (self.manifest.get("sample") or {}).get("by")
        left_out = lambda row: (row.outcome, row.detail) == ("unmeasured", "sampled_out")
        sites, endpoints = defaultdict(list), defaultdict(list)
        for row in self.rows:
            if row.site:
                sites[row.site].append(row)
            if row.endpoint:
                endpoints[row.endpoint].append(row)
        drawn_of = endpoints if by == "endpoint" else sites
        drawn = sum(not all(map(left_out, rows)) for rows in drawn_of.values())
        f = drawn / len(drawn_of)
        clusters = []
        for rows in sites.values():
            asked = [row for row in rows if not left_out(row)]
            if asked:
                within = 1.0 if by == "endpoint" else len(asked) / len(rows)
                clusters.append((1 / f / within, within, asked))
        n = len(clusters)
        total = sum(w * sum(row.seen for row in asked) for w, _, asked in clusters)
        rows = sum(row.seen for _, _, asked in clusters for row in asked)
        measuring = sum(any(row.seen for row in asked) for _, _, asked in clusters)

        def put(key, counts):
            count = sum(w * sum(row.seen and counts(row) for row in asked) for w, _, asked in clusters)
            share, variance = count / total, 0.0
            for w, within, asked in clusters:
                residuals = [(counts(row) - share) if row.seen else 0.0 for row in asked]
                variance += (1 - f) * n / max(1, n - 1) * (w * sum(residuals)) ** 2
                if len(asked) > 1:
                    mean = sum(residuals) / len(asked)
                    spread = sum((it - mean) ** 2 for it in residuals) / (len(asked) - 1)
                    # N/n * M^2 * (1 - m/M) * s^2 / m, with M = m / within.
                    variance += (len(asked) / within) ** 2 * (1 - within) * spread / len(asked) / f
            size = rows if f == 1 else measuring
            if (n > 1 or f == 1) and variance > 0 and 0 < count < total:
                size = share * (1 - share) / (variance / total ** 2)
            size = min(size, rows)
            low, high = 0.0, 1.0
            if f < 1:
                size *= (Z / student(measuring - 1)) ** 2 if measuring > 1 else 0
            if size > 0:
                spread = Z * Z / size
                reach = Z * math.sqrt(share * (1 - share) / size + spread / (4 * size))
                low = max(0.0, (share + spread / 2 - reach) / (1 + spread))
                high = min(1.0, (share + spread / 2 + reach) / (1 + spread))
            self.own.setdefault("estimates", {})[key] = (
                str(int(count + 0.5)), f"{share:.6f}", f"{low:.6f}", f"{high:.6f}", str(int(total + 0.5)))

        for verdict in VERDICTS:
            if verdict not in UNSEEN:
                put(f"verdict/{verdict}", lambda row: row.verdict == verdict)
        for outcome in OUTCOMES:
            if any(row.seen and row.outcome == outcome for row in self.rows):
                put(f"outcome/{outcome}", lambda row: row.outcome == outcome)

    def differences(self):
        self.find_operators()
        for table in ("jsonrpc_errors", "jsonrpc_error_messages", "authentication", "findings", "rows_to_act_on",
                      "protocol_versions"):
            self.own[table] = {}
        for table in (self.outcomes, self.verdicts, self.funnel, self.details, self.jsonrpc_errors, self.http_statuses,
                      self.protocol_versions, self.era_transport, self.authentication, self.latency, self.units,
                      self.concentration, self.platforms, self.findings, self.rows_to_act_on, self.not_measured):
            table()
        for table in ("disagreement", "control", "estimates"):
            if table in self.told:
                getattr(self, table)()
        for table in self.own:
            # These two are of something else than the rows that were measured.
            if table not in ("control", "estimates"):
                self.put_not_measured(table)
        figures = 0
        for table, told in self.told.items():
            # What is no figure of the rows.
            if table == "instrument":
                continue
            own = self.own.get(table)
            if own is None:
                yield f"{table}: not recomputed"
                continue
            for key in sorted(told.keys() | own.keys()):
                figures += 1
                if told.get(key) != own.get(key):
                    yield f"{table}, {key}: the report has {told.get(key)}, the rows come to {own.get(key)}"
        print(f"{figures} lines of {len(self.told)} tables, {len(self.rows)} rows")


if __name__ == "__main__":
    wrong = list(Report(Path(sys.argv[1])).differences())
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
