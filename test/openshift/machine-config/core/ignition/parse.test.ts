import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { decodeContents } from '../../../../../src/openshift/machine-config/core/ignition/contents.ts';
import { type ParsedIgnition, parseIgnition } from '../../../../../src/openshift/machine-config/core/ignition/index.ts';

const inflate = (bytes: Uint8Array, maxOutputLength: number): Uint8Array => gunzipSync(bytes, { maxOutputLength });
const config = (fields: object): object => ({ ignition: { version: '3.2.0' }, ...fields });
const parse = (value: unknown) => parseIgnition(value, { inflate });
const files = (...list: object[]): object => config({ storage: { files: list } });
const file = (path: string, source = 'data:,x', more: object = {}): object => ({ path, contents: { source }, ...more });

function firstOf(value: unknown, kind: 'invalid' | 'refused'): string {
  const [error] = parse(value)[kind];
  return error === undefined ? 'none' : `${error.field}: ${error.message}`;
}

test('decodes plain, percent-encoded, base64 and gzip contents of Ignition files', () => {
  const read = (source: string, compression = ''): string => {
    const decoded = decodeOne(source, compression);
    return 'bytes' in decoded ? new TextDecoder().decode(decoded.bytes) : decoded.error.message;
  };
  assert.equal(read('data:,hello%20world%0A'), 'hello world\n');
  assert.equal(read('data:text/plain;charset=utf-8,a,b;c'), 'a,b;c');
  assert.equal(read('data:text/plain;charset=utf-8;base64,aGk='), 'hi');
  assert.equal(read('data:;base64,aGk%3D'), 'hi');
  assert.equal(read(''), '');
  const packed = gzipSync('packed').toString('base64');
  assert.equal(read(`data:;base64,${packed}`, 'gzip'), 'packed');
  assert.match(read('data:,%zz'), /invalid % escape/);
  assert.match(read('data:;base64,a'), /is not base64/);
  assert.match(read('data:,text', 'gzip'), /is not gzip/);
  assert.match(read('data:,text', 'xz'), /Unsupported value: "xz"/);
});
function decodeOne(source: string, compression: string) {
  return decodeContents({ source, compression }, 'contents', inflate);
}

test('accepts empty sections and null lists in an Ignition config, as Go clients encode them', () => {
  const sections = { config: { replace: { verification: {} } }, proxy: {}, security: { tls: {} }, timeouts: {} };
  const value = {
    ignition: { ...sections, version: '3.2.0' },
    passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA a@b'] }] },
    storage: {
      files: [{ group: {}, path: '/etc/a', user: {}, contents: { source: 'data:,', verification: {} }, mode: 420 }],
      links: null,
    },
    systemd: {
      units: [{ name: 'a@b.service', enabled: true, contents: '[Unit]\nDescription=a \\\n# c\n  b\n', dropins: [] }],
    },
  };
  const { invalid, refused } = parse(value);
  assert.deepEqual([...invalid, ...refused], []);
});

test('rejects sections of an Ignition config that a running host cannot apply, with their paths', () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ storage: { disks: [{ device: '/dev/sda' }] } }, 'spec.config.storage.disks'],
    [{ storage: { raid: [{ name: 'a' }] } }, 'spec.config.storage.raid'],
    [{ storage: { filesystems: [{ device: '/dev/sda' }] } }, 'spec.config.storage.filesystems'],
    [{ storage: { links: [{ path: '/a', target: '/b' }] } }, 'spec.config.storage.links'],
    [{ storage: { directories: [{ path: '/a' }] } }, 'spec.config.storage.directories'],
    [{ storage: { files: [{ path: '/a', append: [{ source: 'data:,x' }] }] } }, 'spec.config.storage.files[0].append'],
    [{ storage: { files: [file('/etc/a', 'https://lab.local/a')] } }, 'spec.config.storage.files[0].contents.source'],
    [{ passwd: { groups: [{ name: 'a' }] } }, 'spec.config.passwd.groups'],
    [{ passwd: { users: [{ name: 'pi' }] } }, 'spec.config.passwd.users[0].name'],
    [{ passwd: { users: [{ name: 'core', passwordHash: 'x' }] } }, 'spec.config.passwd.users[0].passwordHash'],
    [{ kernelArguments: { shouldExist: ['a'] } }, 'spec.config.kernelArguments'],
    [{ ignition: { version: '3.2.0', config: { merge: [{ source: 'https://a' }] } } }, 'spec.config.ignition.config'],
  ];
  for (const [fields, field] of cases) {
    const parsed = parse(config(fields));
    assert.deepEqual(parsed.invalid, [], field);
    assert.deepEqual(
      parsed.refused.map((error) => error.field),
      [field],
    );
    assert.ok(parsed.config !== undefined);
  }
});

test('rejects an Ignition config with hostile paths or names', () => {
  assert.match(firstOf(files(file('/etc/../shadow')), 'invalid'), /files\[0\]\.path: .*must be absolute/);
  assert.match(firstOf(files(file('etc/a')), 'invalid'), /must be absolute/);
  assert.match(firstOf(files(file('/etc//a')), 'invalid'), /must be absolute/);
  assert.match(firstOf(files(file('/etc/a\0b')), 'invalid'), /must be absolute/);
  assert.match(firstOf(files(file('/etc/a'), file('/etc/a')), 'invalid'), /files\[1\]\.path: Duplicate value/);
  assert.match(firstOf(files(file('/etc/a'), file('/etc/a/b')), 'invalid'), /\/etc\/a is a file of this config/);
  const guarded = ['/etc/shadow', '/etc/passwd', '/etc/machine-id', '/etc/ssh/ssh_host_rsa_key', '/proc/sys/a'];
  const own = ['/etc/origin/bootstrap.yaml', '/var/lib/origin/x', '/etc/systemd/system/hyperedge.service.d/a.conf'];
  const control = '/etc/systemd/system.control/hyperedge.service.d/a.conf';
  // FAT ignores the case of names and dots at their end.
  const boot = ['/boot/firmware/CMDLINE.TXT', '/boot/Firmware/cmdline.txt..', '/boot/extlinux/extlinux.conf'];
  for (const path of [...guarded, ...own, control, ...boot])
    assert.match(firstOf(files(file(path)), 'refused'), /files\[0\]\.path: Forbidden: \//, path);
  const units = (name: string) => config({ systemd: { units: [{ name }] } });
  assert.match(firstOf(units('../x'), 'invalid'), /units\[0\]\.name: .*invalid systemd unit/);
  assert.match(firstOf(units('../x.service'), 'invalid'), /units\[0\]\.name/);
  assert.match(firstOf(units('hyperedge.service'), 'refused'), /hyperedge manages the file/);
  const dropin = config({ systemd: { units: [{ name: 'a.service', dropins: [{ name: '../../x.conf' }] }] } });
  assert.match(firstOf(dropin, 'invalid'), /units\[0\]\.dropins\[0\]\.name/);
  const key = (text: string) => config({ passwd: { users: [{ name: 'core', sshAuthorizedKeys: [text] }] } });
  assert.match(firstOf(key('ssh-rsa A\nssh-rsa B'), 'invalid'), /sshAuthorizedKeys\[0\]: .*one line/);
});

test('rejects an Ignition config with invalid modes, owners, unit texts or types', () => {
  assert.match(firstOf(files(file('/a', 'data:,', { mode: 0o4755 })), 'invalid'), /invalid mode 04755 for \/a/);
  assert.match(firstOf(files(file('/a', 'data:,', { mode: '0644' })), 'invalid'), /files\[0\]\.mode: .*integer/);
  const both = { user: { id: 1, name: 'a' } };
  assert.match(firstOf(files(file('/a', 'data:,', both)), 'invalid'), /cannot set both id and name/);
  const unit = config({ systemd: { units: [{ name: 'a.service', contents: '[Unit]\nnonsense' }] } });
  assert.match(firstOf(unit, 'invalid'), /line 2 is neither a section nor an assignment/);
  const before = config({ systemd: { units: [{ name: 'a.service', contents: 'ignored\n[Unit]\nA=b' }] } });
  assert.deepEqual(parse(before).invalid, []);
  assert.match(firstOf(config({ storage: { file: [] } }), 'invalid'), /storage\.file: .*unknown field/);
  assert.match(firstOf(JSON.parse('{"ignition":{"version":"3.2.0"},"__proto__":{}}'), 'invalid'), /unknown field/);
  assert.match(firstOf({ ignition: { version: '2.2.0' } }, 'invalid'), /unknown version/);
  assert.match(firstOf({ storage: {} }, 'invalid'), /invalid version/);
  assert.deepEqual(parse({}), parse(undefined));
  assert.match(firstOf('text', 'invalid'), /invalid version/);
  assert.deepEqual(parse(undefined).config, { ignition: { version: '3.2.0' } });
});

test('rejects a gzip bomb and a data URL of 100 MB immediately', () => {
  const bomb = gzipSync(new Uint8Array(200 * 1024 * 1024)).toString('base64');
  const packed = { path: '/a', contents: { source: `data:;base64,${bomb}`, compression: 'gzip' } };
  const long = `data:,${'x'.repeat(100 * 1024 * 1024)}`;
  const started = performance.now();
  assert.match(firstOf(files(packed), 'invalid'), /contents\.source: .*more than 8388608 bytes/);
  assert.match(firstOf(files(file('/a', long)), 'invalid'), /a URL of 104857606 bytes/);
  assert.ok(performance.now() - started < 3_000);
  const many = Array.from({ length: 20 }, (_, index) => ({
    path: `/f${index}`,
    contents: {
      source: `data:;base64,${gzipSync(new Uint8Array(7 * 1024 * 1024)).toString('base64')}`,
      compression: 'gzip',
    },
  }));
  assert.match(firstOf(files(...many), 'invalid'), /all files together/);
});

test('parses an unchanged Ignition config once when a result cache is passed', () => {
  let inflated = 0;
  const counting = (bytes: Uint8Array, most: number): Uint8Array => {
    inflated += 1;
    return inflate(bytes, most);
  };
  const packed = `data:;base64,${gzipSync('packed').toString('base64')}`;
  const value = files({ path: '/etc/a', contents: { source: packed, compression: 'gzip' } });
  const options = { inflate: counting, parsed: new WeakMap<object, ParsedIgnition>() };
  const first = parseIgnition(value, options);
  assert.deepEqual(first.invalid, []);
  assert.equal(parseIgnition(value, options), first);
  assert.equal(inflated, 1);
  assert.deepEqual(parseIgnition(structuredClone(value), options), first);
  assert.equal(inflated, 2);
});
