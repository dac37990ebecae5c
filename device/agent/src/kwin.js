// SPDX-License-Identifier: GPL-2.0-only
// Runs in KWin, 5 and 6, and tells the agent whose window is in front. @…@ are filled in when it is loaded.
function owner(window) {
    // Dialogs count for their parent. Windows that name each other in a ring end the walk.
    for (var steps = 0; steps < 8 && window && window.transientFor; steps++) {
        window = window.transientFor;
    }
    return window;
}

function tell(method, window) {
    var app = owner(window);
    // Numbers would come as integers or as floating point, by KWin's version: text is text.
    callDBus("@NAME@", "@PATH@", "@INTERFACE@", method,
        String(app ? app.pid : 0), String(app ? app.desktopFileName || app.resourceClass : ""));
}

function front(window) { tell("Front", window); }

function opened(window) {
    if (window && window.normalWindow) {
        tell("Opened", window);
    }
}

if (workspace.windowActivated) {
    workspace.windowActivated.connect(front);
    workspace.windowAdded.connect(opened);
    front(workspace.activeWindow);
} else {
    workspace.clientActivated.connect(front);
    workspace.clientAdded.connect(opened);
    front(workspace.activeClient);
}
