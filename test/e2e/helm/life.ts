/**
 * The life cycle of a Helm release in steps, with a real Helm and its error messages. Each step depends on the ones
 * before.
 */
import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Appliance, eventually, type Ran } from '../harness.ts';

export interface Life {
  readonly appliance: Appliance;
  readonly helm: string;
  /** Encoded version: 3016 for 3.16. */
  readonly version: number;
  readonly namespace: string;
  readonly chart: string;
  readonly scratch: string;
}

export interface Step {
  readonly name: string;
  /** Whether the regular test run includes this step. */
  readonly brief?: true;
  /** First Helm version that supports the step. */
  readonly since?: number;
  readonly run: (life: Life) => Promise<void>;
}

const WAIT = ['--wait', '--timeout', '60s'];
const HELM_4 = 4000;

function helm(life: Life, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const all = ['-n', life.namespace, ...args];
  const home = { KUBECONFIG: life.appliance.kubeconfig, HOME: life.scratch };
  return life.appliance.inside(life.helm, all, { env: { ...home, ...env }, timeoutMs: 120_000 });
}

async function must(life: Life, ...args: string[]): Promise<string> {
  const ran = await helm(life, args);
  assert.equal(ran.code, 0, `helm ${args.join(' ')}\n${ran.stdout}${ran.stderr}\n${await state(life)}`);
  return ran.stdout;
}

/** Error output of a Helm command that must fail. */
async function refused(life: Life, ...args: string[]): Promise<string> {
  const ran = await helm(life, args);
  assert.notEqual(ran.code, 0, `helm ${args.join(' ')}\n${ran.stdout}`);
  return ran.stderr;
}

const kubectl = (life: Life, ...args: string[]): Promise<string> =>
  life.appliance.must(['-n', life.namespace, ...args]);

const state = async (life: Life): Promise<string> =>
  (await life.appliance.kubectl(['-n', life.namespace, 'get', 'all'])).stdout;

const upgrade = (life: Life, ...args: string[]): readonly string[] => [
  ...['upgrade', 'life', life.chart, '--history-max', '0'],
  ...args,
];

const atomic = ({ version }: Life): string => (version < HELM_4 ? '--atomic' : '--rollback-on-failure');

const field = (life: Life, object: string, path: string): Promise<string> =>
  kubectl(life, 'get', object, '-o', `jsonpath={${path}}`);

/**
 * Waits until a field has the value. Helm waits for replica sets only, and the status of a deployment follows later.
 */
async function becomes(life: Life, object: string, path: string, value: string): Promise<void> {
  await eventually(`${path} of ${object} is ${value}`, 20_000, async () =>
    (await field(life, object, path)) === value ? true : undefined,
  );
}

/** Objects of the release in the format of `get -o name`. */
const OWN = ['configmap/life-before', 'configmap/life-kept', 'configmap/life-settings', 'configmap/life-side'];

async function configMaps(life: Life): Promise<string[]> {
  const names = (await kubectl(life, 'get', 'cm', '-o', 'name')).trim().split('\n');
  return names.filter((name) => name.startsWith('configmap/life-'));
}

async function history(life: Life): Promise<{ revision: number; status: string; description: string }[]> {
  return JSON.parse(await must(life, 'history', 'life', '-o', 'json'));
}

const INSTALL: Step = {
  name: 'install makes definitions, hooks and objects, and waits for them',
  brief: true,
  run: async (life) => {
    const output = await must(life, 'install', 'life', life.chart, '--create-namespace', atomic(life), ...WAIT);
    assert.match(output, /STATUS: deployed/);
    assert.match(output, /kube v1\.\d+\.0/);
    assert.match(output, /has apps\/v1 true\nhas apps\/v1\/Deployment true\n/);
    assert.match(output, /has nothing.example.com\/v1 false/);
    assert.match(output, /seen before "nothing"\nnamespaces some\nnobody {}/);
    assert.deepEqual(await configMaps(life), OWN);
    assert.equal(await field(life, 'cm/life-side', '.data.note'), 'from the parent');
    assert.match(await kubectl(life, 'get', 'gadgets'), /NAME +SIZE\nlife +1\n/);
    assert.equal(await field(life, 'gadget/life', '.spec.colour'), 'grey');
    await becomes(life, 'deploy/life-web', '.status.readyReplicas', '1');
    await eventually('the pod of the hook is deleted', 20_000, async () =>
      (await kubectl(life, 'get', 'pods', '-o', 'name')).includes('prepare') ? undefined : true,
    );
    const secret = JSON.parse(await kubectl(life, 'get', 'secret', 'sh.helm.release.v1.life.v1', '-o', 'json'));
    assert.equal(secret.type, 'helm.sh/release.v1');
    assert.equal(secret.metadata.labels.status, 'deployed');
  },
};

const NOTES: Step = {
  name: 'list, status, history and all that get tells',
  run: async (life) => {
    const [listed] = JSON.parse(await must(life, 'list', '-o', 'json'));
    assert.equal(listed.status, 'deployed');
    assert.equal(listed.revision, '1');
    assert.equal(JSON.parse(await must(life, 'status', 'life', '-o', 'json')).info.status, 'deployed');
    if (life.version >= 3014 && life.version < HELM_4) {
      const shown = await must(life, 'status', 'life', '--show-resources');
      assert.match(shown, /==> v1\/Deployment\nNAME +READY +UP-TO-DATE +AVAILABLE +AGE\nlife-web +1\/1 /);
      assert.match(shown, /==> v1\/Pod\(related\)\nNAME +READY +STATUS +RESTARTS +AGE\nlife-web-\S+ +1\/1 /);
    }
    const all = await must(life, 'get', 'all', 'life');
    for (const part of ['USER-SUPPLIED VALUES', 'HOOKS', 'MANIFEST', 'NOTES', 'kind: Gadget'])
      assert.ok(all.includes(part), part);
    assert.equal((await history(life)).length, 1);
  },
};

const TEST: Step = {
  name: 'test runs its pod and shows its log',
  brief: true,
  run: async (life) => {
    const output = await must(life, 'test', 'life', '--logs');
    assert.match(output, /Phase: +Succeeded/);
    assert.match(output, /POD LOGS: life-ask\n[\s\S]*up/);
  },
};

const UPGRADE: Step = {
  name: 'upgrade changes what the chart changes, keeps what others added, and repairs what others changed',
  brief: true,
  run: async (life) => {
    await kubectl(life, 'label', 'deploy', 'life-web', 'added=by-hand');
    if (life.version < HELM_4)
      await kubectl(life, 'patch', 'cm', 'life-settings', '-p', '{"data":{"greeting":"theirs"}}');
    const values = ['--set', 'greeting=again', '--set', 'replicas=2'];
    const output = await must(life, ...upgrade(life, ...values, ...WAIT));
    assert.match(output, /seen before {"greeting":"(hello|theirs)","revision":"1"}/);
    assert.match(output, /has life.example.com\/v1 true/);
    assert.equal(await field(life, 'cm/life-settings', '.data'), '{"greeting":"again","revision":"2"}');
    assert.equal(await field(life, 'deploy/life-web', '.metadata.labels.added'), 'by-hand');
    await becomes(life, 'deploy/life-web', '.status.updatedReplicas', '2');
    assert.equal(await field(life, 'gadget/life', '.spec.size'), '2');
    assert.equal(await field(life, 'cm/life-before', '.data.revision'), '2');
  },
};

const REUSE: Step = {
  name: 'an upgrade can go on from the values of before',
  run: async (life) => {
    const reused = await must(life, ...upgrade(life, '--reuse-values', '--set', 'greeting=third', ...WAIT));
    assert.match(reused, /REVISION: 3/);
    assert.equal(await field(life, 'deploy/life-web', '.spec.replicas'), '2');
  },
};

const CONFLICT: Step = {
  name: 'a field that somebody else changed is a conflict, until it is forced',
  since: HELM_4,
  run: async (life) => {
    await kubectl(life, 'patch', 'deploy', 'life-web', '--field-manager=somebody', '-p', '{"spec":{"replicas":1}}');
    const output = await refused(life, ...upgrade(life, '--reuse-values'));
    assert.match(output, /conflict with "somebody" using apps\/v1: \.spec\.replicas/);
    assert.equal((await history(life)).at(-1)?.status, 'failed');
    await must(life, ...upgrade(life, '--reuse-values', '--force-conflicts', ...WAIT));
    assert.equal(await field(life, 'deploy/life-web', '.spec.replicas'), '2');
    const managers = JSON.parse(
      await kubectl(life, 'get', 'deploy', 'life-web', '-o', 'json', '--show-managed-fields'),
    );
    const helms = managers.metadata.managedFields.filter((each: { manager: string }) => each.manager === 'helm');
    assert.deepEqual(
      helms.map((each: { operation: string }) => each.operation),
      ['Apply'],
    );
  },
};

const REPLACE: Step = {
  name: 'forced, objects are replaced; from the server side and back',
  run: async (life) => {
    const force = life.version < HELM_4 ? ['--force'] : ['--force-replace', '--server-side=false'];
    const uid = await field(life, 'deploy/life-web', '.metadata.uid');
    await must(life, ...upgrade(life, '--reuse-values', '--set', 'greeting=forced', ...force, ...WAIT));
    assert.equal(await field(life, 'deploy/life-web', '.metadata.uid'), uid);
    assert.equal(await field(life, 'cm/life-settings', '.data.greeting'), 'forced');
    assert.equal(await field(life, 'deploy/life-web', '.metadata.labels.added'), '', 'replaced as a whole');
    if (life.version < HELM_4) return;
    await must(life, ...upgrade(life, '--reuse-values', '--set', 'greeting=merged', '--server-side=false', ...WAIT));
    await must(
      life,
      ...upgrade(
        life,
        '--reuse-values',
        '--set',
        'greeting=applied',
        '--server-side=true',
        '--force-conflicts',
        ...WAIT,
      ),
    );
    assert.equal(await field(life, 'cm/life-settings', '.data.greeting'), 'applied');
  },
};

const REFUSED: Step = {
  name: 'what the server refuses, Helm tells: immutable fields, unknown fields, failing hooks',
  run: async (life) => {
    const immutable = await refused(life, ...upgrade(life, '--reuse-values', '--set', 'selector=other'));
    assert.match(
      immutable,
      /Deployment.apps "life-web" is invalid: .*spec.selector: Invalid value: .*field is immutable/,
    );
    const unknown = await helm(life, upgrade(life, '--set', 'unknownField=true'));
    // Helm 3 validates on the client. Helm 4 leaves validation to the server.
    if (life.version < HELM_4) assert.match(unknown.stderr, /unknown field "dta"/);
    else assert.match(unknown.stderr, /life-settings.*\.dta: field not declared in schema/);
    const hook = await refused(life, ...upgrade(life, '--set', 'failingHook=true', '--timeout', '30s'));
    assert.match(hook, /pre-upgrade hooks failed: /);
    assert.equal(await field(life, 'pod/life-prepare', '.status.phase'), 'Failed');
    const rolledBack = await refused(
      life,
      ...upgrade(life, '--set', 'greeting=x', '--set', 'selector=other', atomic(life), '--timeout', '60s'),
    );
    assert.match(rolledBack, /rolled back due to (atomic|rollback-on-failure) being set/);
    const last = (await history(life)).at(-1);
    assert.equal(last?.status, 'deployed');
    assert.match(last?.description ?? '', /^Rollback to /);
  },
};

const ROLLBACK: Step = {
  name: 'rollback goes back to any revision',
  run: async (life) => {
    await must(life, 'rollback', 'life', '1', ...WAIT);
    assert.equal(await field(life, 'cm/life-settings', '.data'), '{"greeting":"hello","revision":"1"}');
    assert.equal(await field(life, 'deploy/life-web', '.spec.replicas'), '1');
    const all = await history(life);
    assert.equal(all.at(-1)?.description, 'Rollback to 1');
    assert.deepEqual(all.filter(({ status }) => status === 'deployed').length, 1);
  },
};

const DRY: Step = {
  name: 'a dry run and a template ask the server and change nothing',
  run: async (life) => {
    const before = await field(life, 'cm/life-settings', '.metadata.resourceVersion');
    const requested = life.version < 3013 ? [] : ['--dry-run=server'];
    if (requested.length > 0) {
      const output = await must(life, ...upgrade(life, ...requested, '--set', 'greeting=dry'));
      assert.match(output, /seen before {"greeting":"hello"/);
    }
    const flag = life.version < HELM_4 ? '--validate' : '--dry-run=server';
    assert.match(await must(life, 'template', 'life', life.chart, flag), /kind: Gadget/);
    assert.equal(await field(life, 'cm/life-settings', '.metadata.resourceVersion'), before);
  },
};

const INTERRUPTED: Step = {
  name: 'an upgrade that was interrupted holds the release until it is rolled back',
  run: async (life) => {
    const before = (await history(life)).at(-1)?.revision;
    const args = ['-n', life.namespace, ...upgrade(life, '--set', 'slowHook=true')];
    const child = life.appliance.spawnInside(life.helm, args);
    const gone = new Promise((done) => child.once('close', done));
    await eventually('the slow hook', 30_000, async () =>
      (await field(life, 'pod/life-prepare', '.status.phase')) === 'Running' ? true : undefined,
    ).finally(() => child.kill('SIGKILL'));
    await gone;
    assert.equal((await history(life)).at(-1)?.status, 'pending-upgrade');
    assert.match(
      await refused(life, ...upgrade(life)),
      /another operation \(install\/upgrade\/rollback\) is in progress/,
    );
    await must(life, 'rollback', 'life', String(before), ...WAIT);
    // Helm 3.9 does not wait for the deletion of the previous hook's pod.
    await kubectl(life, 'delete', 'pod', 'life-prepare', '--ignore-not-found');
    await must(life, ...upgrade(life, ...WAIT));
  },
};

const KEPT: Step = {
  name: 'uninstalled with its history kept, a release comes back',
  run: async (life) => {
    await must(life, 'uninstall', 'life', '--keep-history', '--wait', '--timeout', '60s');
    assert.deepEqual(await configMaps(life), [
      'configmap/life-before',
      'configmap/life-kept',
      'configmap/life-last-words',
    ]);
    assert.equal(JSON.parse(await must(life, 'list', '--uninstalled', '-o', 'json')).length, 1);
    const last = (await history(life)).at(-1);
    await must(life, 'rollback', 'life', String(last?.revision), ...WAIT);
    await becomes(life, 'deploy/life-web', '.status.readyReplicas', '1');
  },
};

const CASCADES: Step = {
  name: 'uninstall leaves what it should, by each propagation',
  since: 3012,
  run: async (life) => {
    const left = async (): Promise<string> =>
      (await kubectl(life, 'get', 'rs,pods', '-l', 'app=life', '-o', 'name')).trim();
    await must(life, 'uninstall', 'life', '--cascade', 'orphan', '--wait', '--timeout', '60s');
    assert.match(await left(), /^replicaset.apps\/life-web-\S+\npod\/life-web-\S+$/);
    await kubectl(life, 'delete', 'rs,pods', '-l', 'app=life');
    await must(life, 'install', 'life', life.chart, ...WAIT);
    await must(life, 'uninstall', 'life', '--cascade', 'foreground', '--wait', '--timeout', '60s');
    assert.equal(await left(), '');
    await must(life, 'install', 'life', life.chart, ...WAIT);
  },
};

const UNINSTALL: Step = {
  name: 'uninstall takes all away but what is kept, and the definitions',
  brief: true,
  run: async (life) => {
    await must(life, 'uninstall', 'life', '--wait', '--timeout', '60s');
    assert.deepEqual(await configMaps(life), [
      'configmap/life-before',
      'configmap/life-kept',
      'configmap/life-last-words',
    ]);
    assert.equal(await kubectl(life, 'get', 'svc,deploy,gadgets', '-o', 'name'), '');
    assert.equal(await kubectl(life, 'get', 'secrets', '-l', 'owner=helm', '-o', 'name'), '');
    assert.match(await refused(life, 'status', 'life'), /release: not found/);
  },
};

const OWNERSHIP: Step = {
  name: 'what is there already is not taken over, unless it is asked for',
  run: async (life) => {
    await kubectl(life, 'create', 'cm', 'life-side');
    const output = await refused(life, 'install', 'life', life.chart);
    assert.match(
      output,
      /ConfigMap "life-side" in namespace "\S+" exists and cannot be imported into the current release: invalid ownership metadata/,
    );
    if (life.version >= 3017) {
      const take = life.version < HELM_4 ? ['--take-ownership'] : ['--take-ownership', '--force-conflicts'];
      await must(life, 'install', 'life', life.chart, ...take, ...WAIT);
      assert.equal(await field(life, 'cm/life-side', '.metadata.labels.app\\.kubernetes\\.io/managed-by'), 'Helm');
      await must(life, 'uninstall', 'life', '--wait', '--timeout', '60s');
    } else await kubectl(life, 'delete', 'cm', 'life-side');
  },
};

const DRIVERS: Step = {
  name: 'releases in config maps, rendered by another program',
  run: async (life) => {
    const driver = { HELM_DRIVER: 'configmap' };
    const post: string[] = [];
    if (life.version < HELM_4) {
      const program = join(life.scratch, 'post-render');
      await writeFile(program, '#!/bin/sh\nexec sed s/.hello.,/rendered,/\n');
      await chmod(program, 0o755);
      post.push('--post-renderer', program);
    }
    const installed = await helm(life, ['install', 'life', life.chart, ...post, ...WAIT], driver);
    assert.equal(installed.code, 0, installed.stderr);
    const greeting = life.version < HELM_4 ? 'rendered' : 'hello';
    assert.equal(await field(life, 'cm/life-settings', '.data.greeting'), greeting);
    assert.match(
      await kubectl(life, 'get', 'cm', '-l', 'owner=helm', '-o', 'name'),
      /configmap\/sh.helm.release.v1.life.v1/,
    );
    assert.equal(JSON.parse(await must(life, 'list', '-o', 'json')).length, 0);
    const gone = await helm(life, ['uninstall', 'life', '--wait', '--timeout', '60s'], driver);
    assert.equal(gone.code, 0, gone.stderr);
  },
};

const REPEATED: Step = {
  name: 'ten releases at the same time',
  run: async (life) => {
    const names = Array.from({ length: 10 }, (_, index) => `many-${index}`);
    const chart = join(life.chart, 'charts/side');
    await Promise.all(names.map((name) => must(life, 'install', name, chart)));
    assert.equal(JSON.parse(await must(life, 'list', '-o', 'json')).length, 10);
    await Promise.all(names.map((name) => must(life, 'uninstall', name)));
    assert.equal(
      JSON.parse(await must(life, 'list', '-a', '-o', 'json').catch(() => must(life, 'list', '-o', 'json'))).length,
      0,
    );
  },
};

export const STEPS: readonly Step[] = [
  INSTALL,
  NOTES,
  TEST,
  UPGRADE,
  REUSE,
  CONFLICT,
  REPLACE,
  REFUSED,
  ROLLBACK,
  DRY,
  INTERRUPTED,
  KEPT,
  CASCADES,
  UNINSTALL,
  OWNERSHIP,
  DRIVERS,
  REPEATED,
];

/** Encoded version: 3016 for 3.16.4. */
export async function versionOf(appliance: Appliance, path: string): Promise<number> {
  const ran = await appliance.inside(path, ['version', '--short'], { env: { HOME: appliance.root } });
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(ran.stdout) ?? [];
  assert.ok(major !== undefined && minor !== undefined, `${path} version: ${ran.stdout}${ran.stderr}`);
  return Number(major) * 1000 + Number(minor);
}
