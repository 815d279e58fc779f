import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseAuthorization } from '../../../src/apiserver/config/authorization.ts';
import { ApiValues, readApiArguments } from '../../../src/apiserver/config/index.ts';
import { silentLog } from '../../../src/base/log.ts';
import { authorizersOf, followAuthorizers } from '../../../src/host/apiserver/authorization.ts';

const HEAD = 'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n';
const WEBHOOK = `  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    authorizedTTL: 1m
    cacheUnauthorizedRequests: false
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: hook.kubeconfig}
    matchConditions:
    - expression: has(request.resourceAttributes)
    - expression: "!('system:masters' in request.groups)"
`;
const FILE = `${HEAD}authorizers:\n- type: Webhook\n  name: ask\n${WEBHOOK}- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n`;

describe('AuthorizationConfiguration', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'authz-'));
    await writeFile(join(directory, 'authz.yaml'), FILE);
    await writeFile(
      join(directory, 'hook.kubeconfig'),
      JSON.stringify({
        'current-context': 'c',
        contexts: [{ name: 'c', context: { cluster: 'k' } }],
        clusters: [{ name: 'k', cluster: { server: 'https://hook.example.com/authorize' } }],
      }),
    );
  });
  after(() => rm(directory, { recursive: true }));
  const valuesOf = (...argv: string[]) => {
    const values = new ApiValues((path) => join(directory, path));
    readApiArguments(argv, values);
    return values;
  };

  it('reads the authorizers in order, with conditions and timeouts', async () => {
    const { authorizers } = await authorizersOf(valuesOf('--authorization-config=authz.yaml'), 'test');
    const [first, ...others] = authorizers;
    assert.deepEqual(others, [
      { type: 'Node', name: 'node' },
      { type: 'RBAC', name: 'rbac' },
    ]);
    assert.equal(first?.name, 'ask');
    assert.equal(first?.type, 'Webhook');
    const { conditions, ...webhook } = first.webhook;
    assert.deepEqual(webhook, {
      endpoint: { url: 'https://hook.example.com/authorize' },
      version: 'v1',
      timeoutMs: 3_000,
      allowedMs: 60_000,
      deniedMs: 0,
      failurePolicy: 'Deny',
    });
    assert.equal(conditions?.hold({ nonResourceAttributes: { path: '/', verb: 'get' }, user: 'a', groups: [] }), false);
  });

  it('rejects invalid and ambiguous settings with the entry and field', async () => {
    const endpoint = async () => ({ url: 'https://h' });
    const cases: [string, RegExp][] = [
      [FILE.replace('timeout: 3s', 'timeout: 60s'), /f\.yaml:7: .*timeout: "60s" is not accepted; give 30s at most/],
      [FILE.replace('    timeout: 3s\n', ''), /timeout is missing/],
      [FILE.replace('name: node', 'name: ask'), /authorizers\[1\]\.name: "ask" is given twice/],
      [FILE.replace('type: Node', 'type: RBAC'), /authorizers\[2\]\.type: RBAC is given twice/],
      [FILE.replace('type: Node', 'type: ABAC'), /must be one of Node, RBAC/],
      [FILE.replace('type: KubeConfigFile', 'type: InClusterConfig'), /not allowed for kube-apiserver/],
      [FILE.replace(/ {4}matchConditionSubject.*\n/, ''), /matchConditionSubjectAccessReviewVersion: is required/],
      [
        FILE.replace('has(request.resourceAttributes)', 'request.nothing'),
        /authorizers\[0\]\.webhook\.matchConditions\[0\]\.expression: .*undefined field 'nothing'/,
      ],
      [
        FILE.replace('has(request.resourceAttributes)', '"\'a\'"'),
        /matchConditions\[0\]\.expression: must evaluate to bool/,
      ],
      [`${HEAD}authorizers: []\n`, /authorizers: is empty/],
      [`${HEAD}authorizers: [{type: Webhook, name: w}]\n`, /webhook: is missing/],
      [FILE.replace('{type: Node, name: node}', '{type: Node, name: node, webhok: {}}'), /unknown field/],
    ];
    for (const [text, message] of cases) {
      await assert.rejects(parseAuthorization(text, 'f.yaml', endpoint), message);
    }
    for (const flag of ['--authorization-mode=RBAC', '--authorization-webhook-config-file=hook.kubeconfig']) {
      await assert.rejects(
        authorizersOf(valuesOf('--authorization-config=authz.yaml', flag), 'test'),
        /--authorization-config: and --authorization-.* exclude each other/,
      );
    }
  });

  it('reloads the authorization configuration when its file changes, and ignores an invalid file', async () => {
    const file = join(directory, 'followed.yaml');
    await writeFile(file, FILE);
    const followed = await followAuthorizers(valuesOf('--authorization-config=followed.yaml'), 'test', silentLog);
    assert.ok(followed);
    try {
      const types = () => followed.current.map(({ type }) => type);
      assert.deepEqual(types(), ['Webhook', 'Node', 'RBAC']);
      const before = followed.current;
      await followed.refresh();
      assert.equal(followed.current, before, 'nothing has changed');
      const reloads = () => [followed.reloads.text, followed.reloads.success?.count, followed.reloads.failure?.count];
      assert.deepEqual(reloads(), [FILE, undefined, undefined]);
      await writeFile(file, `${HEAD}authorizers: [{type: Oracle, name: o}]\n`);
      await followed.refresh();
      assert.equal(followed.current, before);
      assert.deepEqual(reloads(), [FILE, undefined, 1]);
      await writeFile(file, `${HEAD}authorizers: [{type: RBAC, name: r}]\n`);
      // A change is also detected without an explicit refresh.
      for (let deadline = performance.now() + 30_000; types().length !== 1; ) {
        assert.ok(performance.now() < deadline);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      assert.deepEqual(types(), ['RBAC']);
      assert.deepEqual(reloads().slice(1), [1, 1]);
    } finally {
      followed.stop();
    }
  });
});
