# SPDX-License-Identifier: GPL-2.0-only
# Each target sets up by itself what it needs. Build products go to the cache (see ./fasttrack clean --help).

.PHONY: demo test lint kernel clean

demo:
	@./fasttrack demo

test:
	@scripts/test.sh

lint:
	@scripts/lint.sh

kernel:
	@./fasttrack build --target um --kernel-only

clean:
	@./fasttrack clean
