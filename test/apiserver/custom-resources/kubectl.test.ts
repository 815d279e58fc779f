/** The installed kubectl and, if available, Debian's 1.20, with custom resources. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { kubectls } from '../../support/kubectls.ts';
import { type Ran, run, startServer, type TestServer } from '../harness.ts';
import { CRONTAB, cronTabs } from './crontab.ts';

const RESOURCE = (image: string): string => `
apiVersion: stable.example.com/v1
kind: CronTab
metadata: {name: my-cron, namespace: default}
spec:
  cronSpec: "* * * * */5"
  image: ${image}
  ports: [{name: http, port: 80}]
`;

const OF_1_20 = `
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: toys.example.com}
spec:
  group: example.com
  names: {kind: Toy, plural: toys}
  scope: Namespaced
  version: v1
  additionalPrinterColumns: [{name: Size, type: integer, JSONPath: .spec.size}]
  validation:
    openAPIV3Schema: {properties: {spec: {required: [size], properties: {size: {type: integer, minimum: 1}}}}}
---
apiVersion: policy/v1beta1
kind: PodSecurityPolicy
metadata: {name: psp}
spec:
  seLinux: {rule: RunAsAny}
  runAsUser: {rule: MustRunAsNonRoot}
  fsGroup: {rule: RunAsAny}
  supplementalGroups: {rule: RunAsAny}
  volumes: [secret]
`;
const TOY = `
apiVersion: example.com/v1
kind: Toy
metadata: {name: a, namespace: default}
spec: {size: 3, parts: [{any: thing}]}
`;

for (const { label, path } of kubectls()) {
  describe(`custom resources by kubectl (${label})`, () => {
    let server: TestServer;
    before(async () => {
      server = await startServer();
    });
    after(() => server.stop());
    const kubectl = (args: readonly string[], input?: string): Promise<Ran> =>
      run(path, ['--kubeconfig', server.kubeconfig, '--cache-dir', server.directory, ...args], input);
    const ok = async (args: string, expected: RegExp, input?: string): Promise<string> => {
      const { code, stdout, stderr } = await kubectl(args.split(' '), input);
      assert.equal(code, 0, `kubectl ${args}: ${stderr}`);
      assert.match(stdout, expected, `kubectl ${args}`);
      return stdout;
    };
    const fails = async (args: string, expected: RegExp, input?: string): Promise<void> => {
      const { code, stderr } = await kubectl(args.split(' '), input);
      assert.notEqual(code, 0, `kubectl ${args}`);
      assert.match(stderr, expected, `kubectl ${args}`);
    };

    it('kubectl creates a CustomResourceDefinition, waits until it is established, and lists the definition', async () => {
      await ok(
        'apply -f -',
        /customresourcedefinition\.apiextensions\.k8s\.io\/crontabs\.stable\.example\.com created/,
        JSON.stringify(cronTabs()),
      );
      await ok(`wait --for condition=established --timeout=10s crd/${CRONTAB}`, /condition met/);
      await ok('get crd', /^NAME +CREATED AT\ncrontabs\.stable\.example\.com +20\d\d-/);
      await ok('api-resources --api-group=stable.example.com', /crontabs +ct +stable\.example\.com\/v1 +true +CronTab/);
      await ok('apply -f -', /unchanged/, JSON.stringify(cronTabs()));
    });

    it('kubectl creates, shows and changes custom resources', async () => {
      await ok('apply -f -', /crontab\.stable\.example\.com\/my-cron created/, RESOURCE('a:1'));
      await ok('apply -f -', /unchanged/, RESOURCE('a:1'));
      await ok('apply -f -', /configured/, RESOURCE('a:2'));
      await ok('get ct', /^NAME +SPEC +REPLICAS +AGE\nmy-cron +\* \* \* \* \*\/5 +1 +\d+s/);
      await ok('get crontabs.stable.example.com my-cron -o jsonpath={.spec.image}', /^a:2$/);
      await ok('get all', /crontab\.stable\.example\.com\/my-cron/);
      await ok('describe ct my-cron', /Cron Spec: +\* \* \* \* \*\/5/);
      await ok('get ct --field-selector spec.image=a:2 -o name', /my-cron/);
      await ok('label ct my-cron a=b', /labeled/);
      await ok('annotate ct my-cron c=d', /annotated/);
      await ok('patch ct my-cron --type=merge -p {"spec":{"replicas":2}}', /patched/);
      await ok('patch ct my-cron --type=json -p [{"op":"replace","path":"/spec/replicas","value":3}]', /patched/);
      await ok('scale ct my-cron --replicas=4', /scaled/);
      await ok('get ct my-cron -o jsonpath={.spec.replicas}', /^4$/);
      await ok('apply --server-side --force-conflicts -f -', /serverside-applied/, RESOURCE('a:3'));
      await ok('get ct -l a=b -o name', /my-cron/);
    });

    it('kubectl explains and validates custom resources by their schema', async () => {
      await ok('explain crontab.spec.cronSpec', /When\./);
      await ok('explain ct.spec', /What is wanted\./);
      await fails('apply -f -', /should match/, RESOURCE('a').replace('* * * * */5', 'often'));
      await fails('apply -f -', /unknown field/, RESOURCE('a').replace('image:', 'imagine:'));
    });

    it('kubectl edit changes a custom resource', async () => {
      const edited = await run('/usr/bin/env', [
        'KUBE_EDITOR=sed -i s/a:3/a:4/',
        path,
        '--kubeconfig',
        server.kubeconfig,
        '--cache-dir',
        server.directory,
        'edit',
        'ct',
        'my-cron',
      ]);
      assert.equal(edited.code, 0, edited.stderr);
      await ok('get ct my-cron -o jsonpath={.spec.image}', /^a:4$/);
    });

    it('kubectl deletes custom resources and their definition', async () => {
      await ok('apply -f -', /created/, RESOURCE('b').replace('my-cron', 'other'));
      await ok('delete ct my-cron', /deleted/);
      await ok(`delete crd ${CRONTAB}`, /deleted/);
      await fails(
        'get ct',
        /the server doesn't have a resource type "ct"|the server could not find the requested resource/,
      );
    });

    it('kubectl applies manifests of charts for Kubernetes 1.20', async () => {
      await ok('apply -f -', /toys.example.com created\npodsecuritypolicy.policy\/psp created/, OF_1_20);
      await ok('wait --for condition=established --timeout=10s crd/toys.example.com', /condition met/);
      await ok(
        'apply -f -',
        /toys.example.com unchanged\npodsecuritypolicy.policy\/psp (?:unchanged|configured)/,
        OF_1_20,
      );
      await ok('apply -f -', /toy.example.com\/a created/, TOY);
      await ok('apply -f -', /toy.example.com\/a unchanged/, TOY);
      await ok('get toys -o jsonpath={.items[*].spec.parts[0].any}', /^thing$/);
      await ok('get toys', /^NAME +SIZE\na +3\n/);
      await ok('explain toys', /VERSION: +(?:example.com\/)?v1/);
      await ok('get customresourcedefinitions.v1beta1.apiextensions.k8s.io toys.example.com -o yaml', /validation:/);
      await ok('get psp', /^NAME +PRIV .*\npsp +false /);
      await ok('delete -f -', /deleted/, OF_1_20);
    });
  });
}
