# SPDX-License-Identifier: GPL-2.0-only
"""What concurrency a storage device likes best, and what its reads and writes cost each other.

SmartIO (MobiSys 2014) sends as many requests at once as the device's own best concurrency for sequential and random
reads and writes, measured once at installation. `plan` says what is measured, `measure` does it on an emulated phone or
on a real device, `profile` is the file that it ends in, `apply` gives a profile to the elevator. `model` has the
parameters of a phone that its profile belongs to, `filesystem` keeps a look at an unmounted device from writing.
"""
