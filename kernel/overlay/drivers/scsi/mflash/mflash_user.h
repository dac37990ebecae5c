/* SPDX-License-Identifier: GPL-2.0-only */
/* mflash on UML: what the host does for it. */
#ifndef _MFLASH_USER_H
#define _MFLASH_USER_H

int mflash_user_map(const char *path, unsigned long size, void **p);
void mflash_user_unmap(void *p, unsigned long size);

#endif /* _MFLASH_USER_H */
