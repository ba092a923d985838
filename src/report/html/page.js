// Shows the rows of the census. Whatever a stranger's server said reaches the page as text, by textContent and
// nothing else; nothing is asked of anybody.
"use strict";
(async () => {
  const by = (id) => document.getElementById(id);
  const STEP = 100;

  async function unpack(id) {
    const coded = atob(by(`packed-${id}`).textContent);
    const bytes = new Uint8Array(coded.length);
    for (let at = 0; at < coded.length; at++) bytes[at] = coded.charCodeAt(at);
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return JSON.parse(await new Response(plain).text());
  }

  function make(name, text, kind) {
    const it = document.createElement(name);
    if (text !== undefined && text !== null) it.textContent = text;
    if (kind) it.className = kind;
    return it;
  }

  // Words of the census: what stands between backticks is code.
  function prose(name, text, kind) {
    const it = make(name, null, kind);
    (text || "").split("`").forEach((part, at) => it.append(at % 2 ? make("code", part) : part));
    return it;
  }

  let words, rows;
  try {
    [words, rows] = await Promise.all([unpack("words"), unpack("rows")]);
  } catch (error) {
    by("shown").textContent = "This browser cannot unpack the rows; they are in results.csv too.";
    return;
  }
  const M = Object.fromEntries(words.members.map((name, at) => [name, at]));
  const COLUMNS = [
    ["name", "name"], ["verdict", "verdict"], ["outcome", "outcome"], ["detail", "detail"],
    ["protocol_version", "version"], ["total_ms", "ms"],
  ];
  const check = (finding) => finding.split(":", 1)[0];
  const all = rows.map((row, number) => ({ row, number, text: null }));
  let sorted = all, found = all, drawn = 0, order = null, alone = null;

  // What can be chosen, with how often it occurs.
  function counts(of) {
    const many = new Map();
    for (const { row } of all) for (const it of new Set(of(row))) many.set(it, (many.get(it) || 0) + 1);
    return [...many].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }
  function choices(select, of) {
    select.append(new Option("any", ""));
    for (const [name, count] of counts(of)) select.append(new Option(`${name} (${count})`, name));
  }
  choices(by("by-verdict"), (row) => [row[M.verdict]]);
  choices(by("by-outcome"), (row) => [row[M.outcome]]);
  choices(by("by-finding"), (row) => row[M.findings].map(check));
  for (const [site, count] of counts((row) => row[M.site] ? [row[M.site]] : []).slice(0, 200)) {
    const option = make("option");
    option.value = site;
    option.label = `${count}`;
    by("sites").append(option);
  }

  function text(it) {
    it.text ??= it.row.flat().filter((value) => typeof value === "string" || typeof value === "number").join("\n").toLowerCase();
    return it.text;
  }

  function filter() {
    const search = by("search").value.trim().toLowerCase(), site = by("by-site").value.trim().toLowerCase();
    const verdict = by("by-verdict").value, outcome = by("by-outcome").value, finding = by("by-finding").value;
    found = alone !== null ? [all[alone]] : sorted.filter((it) => {
      const row = it.row;
      return (!verdict || row[M.verdict] === verdict) && (!outcome || row[M.outcome] === outcome)
        && (!finding || row[M.findings].some((one) => check(one) === finding))
        && (!site || (row[M.site] || "").toLowerCase().includes(site))
        && (!search || text(it).includes(search));
    });
    by("results").tBodies[0].replaceChildren();
    drawn = 0;
    draw();
  }

  function sort(member) {
    everyRow();
    const falling = order && order.member === member && !order.falling;
    order = { member, falling };
    const at = M[member], way = falling ? -1 : 1;
    sorted = all.slice().sort((a, b) => {
      const one = a.row[at], other = b.row[at];
      // What is not there comes last, whichever way.
      if (one === null || one === "") return other === null || other === "" ? a.number - b.number : 1;
      if (other === null || other === "") return -1;
      return one < other ? -way : one > other ? way : a.number - b.number;
    });
    for (const th of by("results").tHead.rows[0].cells) {
      if (th.dataset.member === member) th.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
    filter();
  }

  function draw() {
    const more = found.slice(drawn, drawn + STEP).map(line);
    by("results").tBodies[0].append(...more);
    drawn += more.length;
    by("more").hidden = drawn >= found.length;
    by("printed").textContent = drawn < found.length
      ? `The first ${drawn.toLocaleString("en")} are printed; all are in results.csv.` : "";
    by("shown").textContent = found.length === all.length
      ? `${all.length.toLocaleString("en")} rows.`
      : `${found.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} rows.`;
  }

  function line(it) {
    const { row, number } = it;
    const tr = make("tr");
    tr.id = `row-${number + 1}`;
    for (const [member] of COLUMNS) {
      const td = make("td");
      if (member === "name") {
        const button = make("button", null, "unfold");
        button.type = "button";
        button.setAttribute("aria-expanded", "false");
        button.append(make("bdi", row[M.name] || row[M.address] || `row ${number + 1}`));
        button.addEventListener("click", () => unfold(tr, it, button));
        td.append(button);
        if (row[M.name]) td.append(make("bdi", row[M.address], "address"));
      } else if (member === "verdict") {
        td.append(make("span", null, `dot ${row[M.verdict]}`), row[M.verdict]);
      } else if (member === "total_ms") {
        td.className = "right";
        td.textContent = row[M.total_ms] === null ? "" : `${Math.round(row[M.total_ms])}`;
      } else {
        td.append(make("bdi", row[M[member]]));
      }
      tr.append(td);
    }
    return tr;
  }

  const chunks = new Map();
  function told(number) {
    const chunk = Math.floor(number / words.chunk);
    if (!chunks.has(chunk)) chunks.set(chunk, unpack(`told-${chunk}`));
    return chunks.get(chunk).then(({ commands, stories }) => {
      const story = stories[number % words.chunk];
      if (!story.command) return story;
      const [before, after] = commands[story.command[0]];
      return { ...story, curl: before + story.command[1] + after };
    });
  }

  async function unfold(tr, it, button) {
    const next = tr.nextElementSibling;
    if (next && next.classList.contains("of")) {
      next.remove();
      button.setAttribute("aria-expanded", "false");
      return;
    }
    button.setAttribute("aria-expanded", "true");
    const of = make("tr", null, "of"), td = make("td", null, "story");
    td.colSpan = COLUMNS.length;
    of.append(td);
    tr.after(of);
    td.append(...conclusion(it), ...exchanged(await told(it.number), it));
  }

  function meant(list, name, value, about) {
    if (value === null || value === undefined || value === "") return;
    const dd = make("dd");
    dd.append(make("bdi", value));
    if (about) dd.append(" ", prose("span", about, "about"));
    list.append(make("dt", name), dd);
  }

  function conclusion({ row, number }) {
    const list = make("dl"), value = (member) => row[M[member]];
    const outcome = value("outcome"), detail = value("detail");
    meant(list, "outcome", outcome, words.outcome[outcome]);
    meant(list, "detail", detail, words.detail[outcome][detail]);
    meant(list, "verdict", value("verdict"), words.verdict[value("verdict")]);
    meant(list, "hint", value("hint"), words.hint[value("hint")]);
    meant(list, "era", value("era"), words.era[value("era")]);
    const rest = [["address", "address"], ["listed as", "listed"], ["site", "site"], ["HTTP status", "http_status"],
      ["error", "rpc_code"], ["message", "rpc_message"], ["declared", "declared_transport"], ["transport", "transport"],
      ["version", "protocol_version"], ["server", "server_name"], ["its version", "server_version"],
      ["challenge", "auth_scheme"], ["media type", "content_type"], ["answered by", "final_url"],
      ["attempts", "attempts"], ["requests", "requests"], ["asked at", "started_at"]];
    for (const [name, member] of rest) meant(list, name, value(member));
    if (value("flaky")) meant(list, "flaky", "yes", "The attempts disagree.");
    const parts = [make("h3", "What decided"), list];
    if (value("findings").length) {
      const findings = make("ul");
      for (const finding of value("findings")) {
        const li = make("li");
        li.append(make("bdi", finding), " ", prose("span", words.check[check(finding)], "about"));
        findings.append(li);
      }
      parts.push(make("h3", "Noticed beside it"), findings);
    }
    const link = make("a", `row ${number + 1}`);
    link.href = `#row=${number + 1}`;
    const dd = make("dd");
    dd.append(link);
    list.append(make("dt", "quote as"), dd);
    return parts;
  }

  function message(heading, said) {
    const box = make("div");
    box.append(make("h4", heading));
    const lines = [said.line, ...said.headers.map(([name, value]) => `${name}: ${value}`)].filter((one) => one);
    if (lines.length) box.append(make("pre", lines.join("\n")));
    if (said.body) box.append(make("pre", said.body));
    if (said.note) box.append(make("p", `(${said.note})`, "basis"));
    return box;
  }

  function exchanged(story) {
    if (!story.exchanges.length) return [make("h3", "Exchanges"), make("p", "Nothing was sent.")];
    const parts = [];
    story.exchanges.forEach((one, at) => {
      const pair = make("div", null, "pair");
      const sent = one.request || { headers: [], note: "the command below has the whole of it" };
      pair.append(message("sent", sent), message("came back", one.reply));
      parts.push(prose("h3", `${at + 1}. ${words.leg[one.leg]}`), pair, make("p", `Attempt ${one.attempt}, ${one.at}. ${one.timing}`, "basis"));
    });
    if (story.more) parts.push(make("p", `${story.more} further exchanges are in evidence.ndjson.`, "basis"));
    const curl = make("pre", story.curl), copy = make("button", "Copy", "copy");
    curl.tabIndex = 0;
    copy.type = "button";
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(story.curl);
        copy.textContent = "Copied";
      } catch (refused) {
        getSelection().selectAllChildren(curl);
        copy.textContent = "Selected: copy it now";
      }
    });
    parts.push(make("h3", "See for yourself"), curl, copy);
    return parts;
  }

  // A link to one row shows that row alone, unfolded.
  function follow() {
    const number = Number((/^#row=(\d+)$/.exec(location.hash) || [])[1]);
    if (!number || number > all.length) return;
    alone = number - 1;
    filter();
    by(`row-${number}`).querySelector("button").click();
    by("rows").scrollIntoView();
  }

  function everyRow() {
    alone = null;
    if (location.hash.startsWith("#row=")) history.replaceState(null, "", "#rows");
  }

  for (const [member, name] of COLUMNS) {
    const th = make("th", null, `c-${member}`), button = make("button", name);
    th.scope = "col";
    th.dataset.member = member;
    button.type = "button";
    button.addEventListener("click", () => sort(member));
    th.append(button);
    by("results").tHead.rows[0].append(th);
  }
  let waiting;
  by("filters").addEventListener("input", () => {
    everyRow();
    clearTimeout(waiting);
    waiting = setTimeout(filter, 120);
  });
  by("filters").addEventListener("reset", () => {
    everyRow();
    setTimeout(filter);
  });
  by("filters").addEventListener("submit", (event) => event.preventDefault());
  by("more").addEventListener("click", () => {
    const first = drawn;
    draw();
    by("results").tBodies[0].querySelectorAll("button.unfold")[first]?.focus();
  });
  addEventListener("hashchange", () => {
    follow();
    open(location.hash);
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((it) => { it.open = true; }));
  function open(hash) {
    const it = hash.startsWith("#table-") && by(hash.slice(1));
    if (it) it.open = true;
  }
  by("filters").hidden = by("results").hidden = false;
  filter();
  follow();
  open(location.hash);
  document.documentElement.dataset.ready = "yes";
})();
