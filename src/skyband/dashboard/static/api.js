"use strict";
// The API as openapi.json describes it, as a page to read.
function node(tag, kind, text) { const made = document.createElement(tag); made.className = kind; made.textContent = text; return made; }

async function load() {
  const about = document.getElementById("about"), place = document.getElementById("paths");
  let description;
  try { description = await (await fetch("/openapi.json")).json(); } catch (error) { about.textContent = "The server cannot be reached."; return; }
  about.textContent = description.info.description;
  for (const [path, operations] of Object.entries(description.paths)) {
    place.append(node("h2", "", path));
    for (const verb of ["get", "post", "put", "patch", "delete"]) {
      const operation = operations[verb];
      if (!operation) continue;
      const line = node("div", "path", "");
      line.append(node("span", "verb", verb.toUpperCase()), node("span", "", operation.summary));
      place.append(line);
      for (const parameter of operation.parameters || []) place.append(node("p", "soft small", (parameter.in === "header" ? parameter.name + ": " : "?" + parameter.name + "= ") + parameter.description));
      const body = operation.requestBody && operation.requestBody.content["application/json"].schema;
      if (body && !body.properties) for (const one of body.examples) place.append(node("pre", "soft", "body: " + JSON.stringify(one)));
      else if (body) place.append(node("pre", "soft", "body: {" + Object.entries(body.properties || {}).map(([name, one]) => '"' + name + '": ' + (one.type || "…")).join(", ") + "}"));
    }
  }
}
load();
