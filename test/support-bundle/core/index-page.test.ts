import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indexPage, safePath, uniquePaths } from '../../../src/support-bundle/core/index.ts';

test('the index page escapes names and reasons as HTML and encodes links', () => {
  const evil = '"><script>alert(1)</script>';
  const page = indexPage({
    host: evil,
    version: '1',
    time: 't',
    since: 's',
    knownSecrets: 3,
    sections: [
      { id: evil, title: evil, tookMs: 1, problems: [evil], entries: [{ path: 'a b/c?#%.txt', bytes: 10, cut: evil }] },
    ],
  });
  assert.ok(!/<script/i.test(page), page);
  assert.match(page, /href="a%20b\/c%3F%23%25\.txt"/);
  assert.match(page, /default-src 'none'/);
});

test('converts any name to a relative path without parent directories in the support bundle', () => {
  for (const name of [
    '../../etc/passwd',
    '/abs',
    'a/../../b',
    '..',
    '',
    'x\0y',
    'a\\b',
    '.hidden',
    '-rf',
    'é<>"',
    'a'.repeat(400),
  ]) {
    const path = safePath('dir', name);
    assert.match(path, /^dir(?:\/[A-Za-z0-9_=@+][A-Za-z0-9._=@+-]{0,99})*$/, path);
    assert.ok(!path.split('/').includes('..'));
  }
});

test('gives files of a support bundle different paths, also on file systems that ignore case', () => {
  const unique = uniquePaths();
  assert.deepEqual(['a/x.yaml', 'a/X.yaml', 'a/x.yaml', 'y', 'y'].map(unique), [
    ...['a/x.yaml', 'a/X~2.yaml', 'a/x~3.yaml', 'y', 'y~2'],
  ]);
});
