import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutSystemErrors } from '../../src/cli/system-errors.ts';

const CASES: readonly (readonly [message: string, shown: string])[] = [
  ["ENOENT: no such file or directory, open '/a'", '/a does not exist; check the path'],
  ["/a: ENOENT: no such file or directory, open '/a'", '/a: does not exist; check the path'],
  ['cannot read /a: EISDIR: illegal operation on a directory, read', 'cannot read /a: is a directory; give a file'],
  [
    "EXDEV: cross-device link not permitted, rename '/a' -> '/b'",
    '/a to /b is on another file system; give a path on the same file system',
  ],
  [
    'listen EADDRINUSE: address already in use 0.0.0.0:8443',
    '0.0.0.0:8443 is used by another process; find it with ss -tulpn',
  ],
  [
    'store: 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1',
    'store: 127.0.0.1:1: refuses connections; check that the server runs and the port is right',
  ],
  [
    'registry x cannot be reached: getaddrinfo ENOTFOUND x',
    'registry x cannot be reached: is not a known host name; check the name and the DNS servers',
  ],
  ["/a: EACCES: permission denied, open '/a'; run chmod 0600 /a", '/a: permission denied; run chmod 0600 /a'],
  ['image x: it is damaged', 'image x: it is damaged'],
  ["EWEIRD: something new, open '/a'", "EWEIRD: something new, open '/a'"],
];

test('replaces error numbers by the cause and a fix', () => {
  for (const [message, shown] of CASES) assert.equal(withoutSystemErrors(message), shown);
});
