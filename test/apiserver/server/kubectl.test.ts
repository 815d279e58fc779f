/** The installed kubectl and, if available, Debian's 1.20, with an API server without controllers and kubelets. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { kubectls } from '../../support/kubectls.ts';
import { type Ran, run, startServer, type TestServer } from '../harness.ts';

const MANIFEST = `
apiVersion: v1
kind: Namespace
metadata: {name: hello}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: hello}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cfg, namespace: hello}
data: {A: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: hello}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: busybox, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: hello}
spec: {selector: {app: web}, ports: [{port: 80}]}
`;

for (const { label, path } of kubectls()) {
  describe(`kubectl (${label})`, () => {
    let server: TestServer;
    before(async () => {
      server = await startServer();
    });
    after(() => server.stop());
    const kubectl = (args: string, input?: string): Promise<Ran> =>
      run(
        path,
        ['--kubeconfig', server.kubeconfig, '--cache-dir', server.directory, '-n', 'hello', ...args.split(' ')],
        input,
      );
    const ok = async (args: string, expected: RegExp, input?: string): Promise<void> => {
      const { code, stdout, stderr } = await kubectl(args, input);
      assert.equal(code, 0, `kubectl ${args}: ${stderr}`);
      assert.match(stdout, expected, `kubectl ${args}`);
    };
    const fails = async (args: string, expected: RegExp, input?: string): Promise<void> => {
      const { code, stderr } = await kubectl(args, input);
      assert.notEqual(code, 0, `kubectl ${args}`);
      assert.match(stderr, expected, `kubectl ${args}`);
    };

    it('kubectl applies, changes and shows objects', async () => {
      await ok('apply -f -', /deployment\.apps\/web created/, MANIFEST);
      await ok('apply -f -', /deployment\.apps\/web unchanged/, MANIFEST);
      await ok(
        'get deploy -o wide',
        /NAME +READY +UP-TO-DATE +AVAILABLE +AGE +CONTAINERS +IMAGES +SELECTOR\nweb +0\/2/,
      );
      await ok('get all', /service\/web +ClusterIP +172\.30\./);
      await ok('scale deploy web --replicas=5', /scaled/);
      await ok('label deploy web x=y', /labeled/);
      await ok('get deploy -l x=y -o jsonpath={.items[0].spec.replicas}', /^5$/);
      await ok(
        'patch deploy web -p {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"b:2"}]}}}}',
        /patched/,
      );
      await ok('patch deploy web --type=json -p [{"op":"replace","path":"/spec/replicas","value":3}]', /patched/);
      await ok('patch cm cfg --type=merge -p {"data":{"A":null,"B":"2"}}', /patched/);
      await ok('get cm cfg -o jsonpath={.data}', /^\{"B":"2"\}$/);
      await ok('set image deploy/web c=foo', /image updated/);
      await ok('describe deploy web', /Replicas: +3 desired/);
    });

    it('kubectl applies on the server and shows differences', async () => {
      await ok('apply --server-side --force-conflicts -f -', /deployment\.apps\/web serverside-applied/, MANIFEST);
      const { code, stdout } = await kubectl('diff -f -', MANIFEST.replace('replicas: 2', 'replicas: 7'));
      assert.equal(code, 1);
      assert.match(stdout, /^\+ {2}replicas: 7$/m);
    });

    it('kubectl runs pods, exposes deployments and creates objects of each type', async () => {
      await ok('run p1 --image=busybox', /pod\/p1 created/);
      await ok('get pod p1 -o jsonpath={.spec.volumes[0].projected.sources[*]}', /serviceAccountToken/);
      await ok('expose deploy web --name=web2 --port=90', /exposed/);
      await ok('create cm typed --from-literal=a=b', /created/);
      await ok('create deployment typed --image=x', /created/);
      await ok('create role r --verb=get --resource=pods', /created/);
      await ok('create rolebinding r --role=r --user=bob', /created/);
      await ok('auth can-i create pods', /^yes/);
      await ok('auth can-i get pods --as=bob', /^yes/);
      assert.match((await kubectl('auth can-i delete pods --as=bob')).stdout, /^no/);
      if (label === 'installed') await ok('create token default', /^ey[\w-]+\.[\w-]+\.[\w-]+\s*$/);
    });

    it('kubectl explains kinds', async () => {
      await ok('api-resources', /deployments +deploy +apps\/v1 +true +Deployment/);
      await ok('explain deployment.spec.replicas', /integer/);
      await ok('version', /hyperedge/);
      await ok('get --raw /readyz', /^ok$/);
    });

    it('kubectl shows objects while it watches, and waits for a deletion', async () => {
      const watching = kubectl('get cm -w --request-timeout=3s');
      await new Promise((resolve) => setTimeout(resolve, 700));
      await ok('create cm seen --from-literal=a=b', /created/);
      await ok('delete cm seen', /deleted/);
      assert.match((await watching).stdout, /seen +1/);
      const waiting = kubectl('wait --for=delete cm/cfg --timeout=5s');
      await new Promise((resolve) => setTimeout(resolve, 700));
      await ok('delete cm cfg', /deleted/);
      assert.equal((await waiting).code, 0);
    });

    it('kubectl reports unknown fields, invalid objects and missing objects', async () => {
      const pod = (text: string) => `apiVersion: v1\nkind: Pod\n${text}`;
      await fails(
        'apply -f -',
        /unknown field|ValidationError/,
        pod('metadata: {name: x}\nspec: {containers: [{name: a, image: b, foo: 1}]}'),
      );
      await fails(
        'create --validate=false -f -',
        /Invalid value: "Bad_Name"/,
        pod('metadata: {name: Bad_Name}\nspec: {containers: [{name: a, image: b}]}'),
      );
      await fails(
        'create --validate=false -f -',
        /cannot unmarshal string/,
        pod('metadata: {name: x}\nspec: {containers: "x"}'),
      );
      await fails(
        'apply -f -',
        /no matches for kind|could not find the requested resource/,
        'apiVersion: v1\nkind: Nothing\nmetadata: {name: x}',
      );
      await fails('get pod none', /pods "none" not found/);
      await fails(
        'get pods --as=bob -n default',
        /pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "default"/,
      );
    });
  });
}
