// SPDX-License-Identifier: GPL-2.0-only
// Runs once in KWin, 5 and 6, and tells the agent the titles of all windows. @…@ are filled in when it is loaded.
var all = workspace.windowList ? workspace.windowList() : workspace.clientList();
var told = [];
for (var number = 0; number < all.length; number++) {
    var window = all[number];
    told.push([String(window.pid), String(window.desktopFileName || window.resourceClass), String(window.caption)]);
}
callDBus("@NAME@", "@PATH@", "@INTERFACE@", "Windows", JSON.stringify(told));
