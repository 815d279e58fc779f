import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createKnownValues,
  environmentRedactor,
  logRedactor,
  REMOVED,
  redactObject,
  secretsIn,
} from '../../../src/support-bundle/core/index.ts';

const none = createKnownValues([]);
const line = (text: string): string => logRedactor(none)(text);

const SECRET = 'hunter2-Secret';

const LINES: readonly (readonly [what: string, text: string])[] = [
  ['a pair', `password=${SECRET}`],
  ['a quoted pair', `{"user":"x","password":"${SECRET}"} trailing`],
  ['a pair in escaped JSON', `msg="{\\"clientSecret\\":\\"${SECRET}\\"}"`],
  ['a YAML field', `  token: ${SECRET}`],
  ['an upper-case variable', `DB_PASSWORD=${SECRET}`],
  ['a variable with a short name', `start SMTP_PASS=${SECRET}`],
  ['a pair with a short name', `login user=x pw=${SECRET}`],
  ['a signed URL', `GET https://x.example/layer?X-Amz-Expires=60&X-Amz-Signature=${SECRET} 403`],
  ['a shared access signature', `GET https://x.example/blob?sv=1&sig=${SECRET}&se=2 403`],
  ['a one-time link to the console', `open https://10.0.0.1:6443/console/#login=${SECRET}`],
  ['a flag with a space', `run --token ${SECRET} --root /`],
  ['a flag with =', `run --client-secret=${SECRET}`],
  ['a bearer token', 'Authorization: Bearer hunter2-Secret'],
  ['a header in the middle', `curl -H "X-Auth-Token: ${SECRET}" https://x`],
  ['a URL with a password', `proxy http://user:${SECRET}@10.0.0.1:3128 used`],
  ['a URL with a token as the user', `clone https://${SECRET}@example.com/x.git`],
  ['a URL with a parameter', `GET /oauth?access_token=${SECRET}&x=1`],
  ['credentials of curl', `curl -u admin:${SECRET} https://x`],
  [
    'a private key with escaped line breaks',
    `key="-----BEGIN EC PRIVATE KEY-----\\n${SECRET}\\n-----END EC PRIVATE KEY-----"`,
  ],
  ['the last applied configuration', `kubectl.kubernetes.io/last-applied-configuration: {"data":{"a":"${SECRET}"}}`],
  ['an environment of a unit', `Environment="A=${SECRET}" B=c`],
  ['a data URL', `source: data:text/plain;charset=utf-8;base64,${SECRET}`],
  ['registry logins', `{"auths":{"r":{"auth":"${SECRET}"}}}`],
  ['a pair with the name pass', `[db]host=x pass=${SECRET}`],
  ['an XML element', `<user><db-password>${SECRET}</db-password></user>`],
  ['an entry of .netrc', `machine h login u password ${SECRET}`],
  ['a flag of mysql without a space', `mysqldump -uroot -p${SECRET} db`],
  ['a flag of sshpass', `sshpass -p ${SECRET} ssh host`],
  ['a cookie', `Cookie: ssn=1; session=${SECRET}`],
  [
    'JSON after the prefix of a container log',
    `2026-01-01T00:00:00Z stdout F {"env":[{"name":"A","value":"${SECRET}"}]}`,
  ],
];

for (const [what, text] of LINES)
  test(`removes a secret from ${what}`, () => {
    const result = line(text);
    assert.ok(!result.includes(SECRET), result);
    assert.ok(result.includes(REMOVED), result);
  });

test('redaction removes tokens that are recognizable by their format', () => {
  for (const token of [
    'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl',
    'sha256~abcdefghijklmnopqrstuvwxyz0123456789',
    'abcdef.0123456789abcdef',
    `abcdef.${'0123456789abcdef'.repeat(3)}`,
    'AKIAABCDEFGHIJKLMNOP',
    'ASIAABCDEFGHIJKLMNOP',
    'ghp_abcdefghijklmnopqrstuvwxyz',
    `github_pat_11ABCDEFG0_${'abcdefghij'.repeat(3)}`,
    `npm_${'abcdef'.repeat(6)}`,
    `pypi-AgEIcHlwaS5vcmc${'abcdef'.repeat(6)}`,
    `hf_${'abcdefgh'.repeat(4)}`,
    ['sk', 'live', 'abcdefghijklmnopqrstuvwx'].join('_'),
    `AIza${'SyABCDE'.repeat(5)}`,
    `SG.${'abcdefghijk'.repeat(2)}.${'lmnopqrstuv'.repeat(3)}`,
    `123456789:AA${'abcdefghijk'.repeat(3)}`,
    'https://hooks.slack.com/services/T00000000/B00000000/abcdefghijklmnopqrstuvwx',
    'https://discord.com/api/webhooks/123456789012345678/abcdefghijklmnopqrstuvwx',
    'https://example.webhook.office.com/webhookb2/0a1b@2c3d/IncomingWebhook/abcdefghijkl/mnopqrstuvwx',
    'sk-proj-abcdefghijklmnopqrstuvwxyz',
    '$6$salt$hashhashhashhash',
  ])
    assert.ok(!line(`found ${token} here`).includes(token.slice(-12)), token);
});

test('redaction keeps names that resemble tokens', () => {
  for (const text of [
    'npm_config_registry=https://registry.lab/',
    'url: https://hooks.lab/webhook/validate-pods',
    'pypi-mirror.lab answers',
    'task-sk_live is done',
  ])
    assert.equal(line(text), text);
});

test('removes a private key that spans several log lines with prefixes, and keeps the lines after it', () => {
  const redact = logRedactor(none);
  const lines = [
    'Jan 1 host x[1]: -----BEGIN PRIVATE KEY-----',
    'Jan 1 host x[1]: MIIEvgIBADANBgkqhkiG9w0BAQEFAASC',
    'Jan 1 host x[1]: BKgwggSkAgEAAoIBAQC7',
    'Jan 1 host x[1]: -----END PRIVATE KEY-----',
    'Jan 1 host x[1]: listening on port 80',
  ].map(redact);
  assert.ok(!lines.join('\n').includes('MIIE'));
  assert.ok(!lines.join('\n').includes('BKgw'));
  assert.equal(lines.at(-1), 'Jan 1 host x[1]: listening on port 80');
});

test('redaction keeps text that contains no secret', () => {
  for (const text of [
    'pod evicted namespace=default name=web-1',
    'secretName: tls',
    'automountServiceAccountToken: false',
    '2026-01-01T00:00:00Z I apiserver request method=GET path=/api/v1/secrets status=200',
    'https://10.0.0.1:8443/readyz?verbose',
    'basic authentication is off',
    'GET https://10.0.0.1/x?signed=true&sign=1 disk-sk-1 bypass=1',
    'serviceAccountToken:',
  ])
    assert.equal(line(text), text);
});

test('redaction of environment files keeps variable names and removes values', () => {
  const redact = environmentRedactor(none);
  const text = ['# comment', 'LOGLEVEL=2', `export TOKEN="${SECRET}\\`, `${SECRET}"`, ''].map(redact);
  assert.deepEqual(text, ['# comment', `LOGLEVEL=${REMOVED}`, `export TOKEN=${REMOVED}`, REMOVED, '']);
});

test('removes secret values of objects by field name, and keeps references to secrets', () => {
  const redacted = redactObject(
    {
      kind: 'List',
      items: [
        { kind: 'Secret', data: { a: SECRET }, stringData: { b: SECRET }, metadata: { name: 'kept' } },
        {
          kind: 'Pod',
          metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': `{"x":"${SECRET}"}` } },
          spec: {
            volumes: [{ name: 'v', secret: { secretName: 'kept' } }],
            containers: [
              {
                name: 'c',
                env: [
                  { name: 'A', value: SECRET },
                  { name: 'B', valueFrom: { secretKeyRef: { name: 'kept', key: 'k' } } },
                ],
              },
            ],
          },
        },
        { users: [{ user: { token: SECRET, password: SECRET, 'client-key-data': SECRET } }] },
        { provider: { clientSecret: { value: SECRET }, bindPassword: SECRET } },
        { auths: { registry: { auth: SECRET } } },
        { process: { env: [`A=${SECRET}`, SECRET] }, environment: { X: SECRET } },
        { kind: 'Template', parameters: [{ name: 'P', value: SECRET }] },
        { psk: 12345678, proxy: { httpProxy: `http://u:${SECRET}@h:1` } },
      ],
    },
    none,
  );
  const text = JSON.stringify(redacted);
  assert.ok(!text.includes(SECRET), text);
  assert.ok(!text.includes('12345678'), text);
  assert.equal(text.split('"kept"').length, 4, text);
});

test('removes secrets from arguments, headers, mount options and JSON in annotations', () => {
  const objects: readonly (readonly [what: string, object: object])[] = [
    ['argument after a flag', { args: ['--token', SECRET, '--port', 'kept'] }],
    ['argument after a flag with a prefix', { command: ['x', '--db-pass', SECRET, 'kept'] }],
    [
      'header',
      {
        httpHeaders: [
          { name: 'X-Api-Key', value: SECRET },
          { name: 'Host', value: 'kept' },
        ],
      },
    ],
    ['cookie', { httpHeaders: [{ name: 'Cookie', value: SECRET }], path: 'kept' }],
    ['field', { db_pass: SECRET, smtpPass: SECRET, bypass: 'kept' }],
    ['mount options', { mountOptions: [`user=kept,pass=${SECRET}`] }],
    ['JSON', { note: JSON.stringify({ env: [{ name: 'A', value: SECRET }], image: 'kept' }) }],
    ['JSON in lines', { note: JSON.stringify({ args: ['--secret', SECRET], image: 'kept' }, null, 2) }],
  ];
  for (const [what, object] of objects) {
    const text = JSON.stringify(redactObject(object, none));
    assert.ok(!text.includes(SECRET), `${what}: ${text}`);
    assert.ok(text.includes('kept'), `${what}: ${text}`);
  }
  const found = secretsIn({ args: ['--token', SECRET], httpHeaders: [{ name: 'X-Api-Key', value: 'header-Secret' }] });
  assert.deepEqual(found, [SECRET, 'header-Secret']);
});

test('removes secrets from YAML in a text whose values are on the next lines', () => {
  for (const text of [
    `password: |\n  ${SECRET}\n\n  ${SECRET}\nimage: kept`,
    `db:\n  password: >-\n    ${SECRET}\n  image: kept`,
    `passwords:\n- ${SECRET}\n- ${SECRET}\nimage: kept`,
    `- "api-key":\n    ${SECRET}\n  image: kept`,
    `secret:\n  secretName: kept\n  token: ${SECRET}`,
  ]) {
    const result = String(redactObject(text, none));
    assert.ok(!result.includes(SECRET), result);
    assert.match(result, /kept/);
  }
});

test('removes the values of Secrets in a list, whose items have no kind', () => {
  const text = JSON.stringify(redactObject({ kind: 'SecretList', items: [{ data: { x: SECRET } }] }, none));
  assert.ok(!text.includes(SECRET), text);
});

test('redacts deeply nested values, and field names such as __proto__ change no prototype', () => {
  let deep: unknown = SECRET;
  for (let depth = 0; depth < 5000; depth += 1) deep = { a: deep };
  assert.ok(!JSON.stringify(redactObject(deep, none)).includes(SECRET));
  redactObject(JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"x":1}}}'), none);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test('collects secret values from configuration objects, but not values of ordinary variables', () => {
  const found = secretsIn({
    users: [{ user: { token: 't0ken-value' } }],
    secret: { value: 'inner-value', secretName: 'x' },
    env: [
      { name: 'PATH', value: '/usr/bin' },
      { name: 'API_TOKEN', value: 'variable-value' },
      { name: 'ID', value: 'abc123def456ghi' },
      { name: 'HOST', value: 'db.example.com' },
    ],
  });
  assert.deepEqual(found.sort(), ['abc123def456ghi', 'inner-value', 't0ken-value', 'variable-value']);
});

/** A small generator, so that a failure can be repeated. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test('removes known secret values in every encoding and at every position of random texts', () => {
  const next = random(7);
  const alphabet = 'abcXYZ019+/=&" %\\é~-_.';
  const word = (length: number): string =>
    Array.from({ length }, () => alphabet[Math.floor(next() * alphabet.length)]).join('');
  for (let round = 0; round < 400; round += 1) {
    const secret = `S${word(8 + Math.floor(next() * 40))}E`;
    const known = createKnownValues([secret, `${secret}-longer`, 'another-value']);
    const bytes = Buffer.from(`user:${word(round % 3)}${secret}`);
    for (const form of [
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret).slice(1, -1),
      Buffer.from(secret).toString('base64'),
      Buffer.from(secret).toString('base64url'),
      Buffer.from(secret).toString('hex'),
    ]) {
      const text = `${word(Math.floor(next() * 30))}${form}${word(Math.floor(next() * 30))}`;
      const result = known.remove(text);
      assert.ok(!result.includes(form.replace(/=+$/, '')), `${JSON.stringify(secret)} in ${JSON.stringify(text)}`);
    }
    // The secret is inside of a longer base64 text, such as a basic authorization.
    const encoded = bytes.toString('base64');
    const decoded = Buffer.from(known.remove(encoded).replaceAll(REMOVED, ''), 'base64').toString('utf8');
    assert.ok(!decoded.includes(secret), `${secret} in ${encoded}`);
    assert.equal(known.remove('nothing of interest here'), 'nothing of interest here');
  }
});

test('removes single lines of known private keys, but not lines of certificates', () => {
  const body = 'MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQC7';
  const certificate = 'MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQsw';
  const pem = (what: string, text: string): string => `-----BEGIN ${what}-----\n${text}\n-----END ${what}-----\n`;
  const known = createKnownValues([pem('CERTIFICATE', certificate) + pem('PRIVATE KEY', body)]);
  assert.equal(known.remove(`x ${body} y`), `x ${REMOVED} y`);
  assert.equal(known.remove(certificate), certificate);
});

test('redaction of many values and long lines takes linear time', () => {
  const values = Array.from({ length: 20_000 }, (_, index) => `value-number-${index}-of-many`);
  const known = createKnownValues(values);
  const text = `${'abcdefgh'.repeat(50_000)}${values[19_999]}${'a.b-c_d:'.repeat(50_000)}`;
  const began = performance.now();
  assert.ok(!known.remove(text).includes('19999'));
  const redacted = logRedactor(known)('token'.repeat(60_000) + '='.repeat(100_000));
  assert.ok(redacted.length > 0);
  assert.ok(performance.now() - began < 5000);
});

test('removes environment variables of systemd units that continue on the next lines', () => {
  const redact = logRedactor(none);
  const lines = ['Environment="A=x" \\', `  "B=${SECRET}" \\`, `  "C=${SECRET}"`, 'ExecStart=/bin/true'].map(redact);
  assert.deepEqual(lines, [`Environment=${REMOVED}`, REMOVED, REMOVED, 'ExecStart=/bin/true']);
});

test('redaction removes the end of a private key at the beginning of a truncated text', () => {
  const body = 'MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQC7';
  const redact = logRedactor(none, true);
  assert.deepEqual([`Jan 1 x: ${body}`, body, 'pod started', `digest ${body}`].map(redact), [
    ...[REMOVED, REMOVED, 'pod started', `digest ${body}`],
  ]);
});
