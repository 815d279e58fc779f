import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pullCredentials } from '../../../src/api/kinds/identity/secrets/pull-credentials.ts';

const secretOf = (key: string, value: unknown) => ({ data: { [key]: btoa(JSON.stringify(value)) } });
const user = (username: string) => ({ username, password: 'x' });

test('pull credentials are selected by the longest match of host, port and path segments', () => {
  const auths = {
    'reg.example:5000': { auth: btoa('u:p:q') },
    'https://reg.example:5000/team': user('team'),
    'reg.example:5000/team/app': user('app'),
    '*.lab.example': user('any'),
    'a*.x.example:80': user('part'),
    'https://index.docker.io/v1/': user('hub'),
  };
  const secret = secretOf('.dockerconfigjson', { auths });
  const cases: readonly [string, string | undefined][] = [
    ['reg.example:5000/app:1', 'u'],
    ['reg.example:5000/team/other', 'team'],
    ['reg.example:5000/team/app:1', 'app'],
    ['reg.example:5000/team/app', 'app'],
    ['reg.example:5000/teamster/app', 'u'],
    ['reg.example/app', undefined],
    ['reg.example:5000.evil.test/app', undefined],
    ['one.lab.example/app', 'any'],
    ['lab.example/app', undefined],
    ['a.b.lab.example/app', undefined],
    ['one.lab.example:5000/app', undefined],
    ['abc.x.example:80/app', 'part'],
    ['bc.x.example:80/app', undefined],
    ['busybox', 'hub'],
    ['docker.io/library/busybox', 'hub'],
    ['other.example/app', undefined],
  ];
  for (const [image, expected] of cases) assert.equal(pullCredentials([secret], image)?.username, expected, image);
  assert.deepEqual(pullCredentials([secret], 'reg.example:5000/app:1'), { username: 'u', password: 'p:q' });
});

test('reads both types of pull secrets and ignores malformed secrets', () => {
  const old = secretOf('.dockercfg', { 'reg.example': user('old') });
  assert.equal(pullCredentials([old], 'reg.example/app')?.username, 'old');
  const bad = [
    { data: { '.dockerconfigjson': 'bm90IGpzb24=' } },
    { data: { '.dockerconfigjson': '%%%' } },
    secretOf('.dockerconfigjson', null),
    secretOf('.dockerconfigjson', { auths: { 'reg.example': null } }),
    secretOf('.dockerconfigjson', { auths: { 'reg.example': { auth: btoa('nocolon') } } }),
    secretOf('.dockercfg', []),
    {},
  ];
  assert.equal(pullCredentials(bad, 'reg.example/app'), undefined);
  assert.equal(pullCredentials([...bad, old], 'reg.example/app')?.username, 'old');
});
