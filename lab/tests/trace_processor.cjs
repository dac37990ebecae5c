// SPDX-License-Identifier: GPL-2.0-only
// Perfetto's trace_processor.wasm in Node: `node trace_processor.cjs DIRECTORY < requests > replies`.
// Requests and replies are streams of TraceProcessorRpc. DIRECTORY has the wasm and its glue, which is of a browser.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const directory = process.argv[2];
const requests = new Uint8Array(fs.readFileSync(0));
const CHUNK = 1 << 20;

function patched(text, from, to) {
  if (!text.includes(from)) throw new Error(`the glue is another one: no ${from}`);
  return text.replace(from, to);
}

let glue = fs.readFileSync(path.join(directory, "engine_bundle.node.js"), "utf8");
glue = patched(glue, "this.useMemory64 = hasMemory64Support()", "this.useMemory64 = false");
glue = patched(glue, "locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: self.wasm,");
glue = patched(glue, "const wasmBridge = new", "const wasmBridge = self.bridge = new");

// It writes to the console what it logs; the replies alone go to stdout.
console.log = console.warn = console.error;
globalThis.self = globalThis;
self.WorkerGlobalScope = Object;
self.location = { href: "file:///" };
self.wasm = fs.readFileSync(path.join(directory, "trace_processor.wasm"));
// Without `process` it takes this for a worker of a browser.
vm.runInThisContext(`(function (process) {${glue}\n})`)();

const replies = [];
const port = { postMessage: (data) => replies.push(Buffer.from(data)) };

function run() {
  if (!self.bridge.reqBufferAddr) {
    setTimeout(run, 10);
    return;
  }
  self.onmessage({ data: port });
  for (let at = 0; at < requests.length; at += CHUNK) port.onmessage({ data: requests.subarray(at, at + CHUNK) });
  fs.writeSync(1, Buffer.concat(replies));
}
run();
