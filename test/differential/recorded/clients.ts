/** Real clients whose requests are recorded, each with typical work. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node';
import { createKubeconfig } from '../../../src/pki/kubeconfig.ts';
import { run, type TestServer } from '../../apiserver/harness.ts';
import { APPLIED, CUSTOM, DEFINITION, NODE, WEB } from './documents.ts';

interface Place {
  readonly server: TestServer;
  /** Port of the recording proxy. */
  readonly port: number;
  /** Directory with upstream's programs. */
  readonly programs: string;
}

interface Client {
  readonly limit: number;
  run(place: Place): Promise<void>;
}

function kubeconfigOf({ server, port }: Place): string {
  const client = { certPem: server.admin.certPem, keyPem: server.admin.keyPem };
  return createKubeconfig({ server: `https://127.0.0.1:${port}`, caPem: server.ca.certPem, user: 'admin', client });
}

async function withDirectory(
  place: Place,
  work: (directory: string, kubeconfig: string) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'record-'));
  try {
    const kubeconfig = join(directory, 'kubeconfig');
    await writeFile(kubeconfig, kubeconfigOf(place), { mode: 0o600 });
    await work(directory, kubeconfig);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Commands of kubectl and their standard input. Most succeed, and some fail on purpose. */
const COMMANDS: readonly (readonly [command: string, input?: string])[] = [
  ['version'],
  ['create namespace shop'],
  ['-n shop apply -f -', WEB],
  ['-n shop apply -f -', WEB.replace('replicas: 2', 'replicas: 3')],
  ['-n shop diff -f -', WEB.replace('image: shop:1', 'image: shop:2')],
  ['-n shop get all -o wide'],
  ['-n shop get deployment/web -o yaml'],
  ['-n shop get configmaps,secrets -l app=web --sort-by=.metadata.name'],
  ['-n shop describe deployment web'],
  ['-n shop scale deployment web --replicas=4'],
  ['-n shop set image deployment/web web=shop:3'],
  ['-n shop label deployment web tier=front'],
  ['-n shop label deployment web tier=back'],
  ['-n shop annotate configmap settings note=hello'],
  ['-n shop patch service web -p {"spec":{"sessionAffinity":"ClientIP"}}'],
  ['-n shop patch configmap settings --type=json -p [{"op":"replace","path":"/data/a","value":"2"}]'],
  ['-n shop patch configmap settings --type=merge -p {"data":{"b":null}}'],
  ['-n shop patch configmap settings --type=json -p [{"op":"test","path":"/data/a","value":"9"}]'],
  ['-n shop autoscale deployment web --min=1 --max=5 --cpu-percent=50'],
  ['-n shop expose deployment web --name=web-internal --port=81'],
  ['-n shop rollout history deployment web'],
  ['-n shop rollout restart deployment web'],
  ['-n shop create secret generic login --from-literal=user=me --from-literal=password=it'],
  ['-n shop create configmap many --from-literal=a=1 --from-literal=b=2'],
  ['-n shop create role reader --verb=get --resource=pods'],
  ['-n shop create rolebinding readers --role=reader --serviceaccount=shop:default'],
  ['-n shop create serviceaccount bot'],
  ['-n shop create job once --image=busybox -- true'],
  ['-n shop create cronjob nightly --image=busybox --schedule=5_1_*_*_* -- true'],
  ['-n shop create quota few --hard=pods=10'],
  ['-n shop create serviceaccount default'],
  ['-n shop run lone --image=busybox --restart=Never'],
  ['-n shop run wrong --image=busybox --restart=Never --overrides={"spec":{"containers":[]}}'],
  ['-n shop get pods --field-selector=status.phase=Pending -o name'],
  ['-n shop apply --server-side --field-manager=robot -f -', APPLIED],
  ['-n shop apply --server-side --field-manager=other -f -', APPLIED.replace('a: "1"', 'a: "7"')],
  ['-n shop apply --server-side --field-manager=other --force-conflicts -f -', APPLIED.replace('a: "1"', 'a: "7"')],
  ['-n shop create --dry-run=server -f -', APPLIED.replace('name: applied', 'name: tried')],
  ['-n shop replace -f -', APPLIED.replace('a: "1"', 'a: "3"')],
  ['create -f -', NODE],
  ['get nodes -o wide'],
  ['cordon edge-1'],
  ['taint node edge-1 key=value:NoSchedule'],
  ['describe node edge-1'],
  ['apply -f -', DEFINITION],
  ['wait --for=condition=Established --timeout=20s crd/rigs.lab.test'],
  ['-n shop apply -f -', CUSTOM],
  ['-n shop apply -f -', CUSTOM.replace('size: 3', 'size: large')],
  ['-n shop get rigs'],
  ['-n shop get rig bench -o json'],
  ['auth can-i create pods -n shop'],
  ['auth can-i --list -n shop'],
  ['-n shop get events'],
  ['-n shop get nothing'],
  ['-n shop get pod absent'],
  ['-n shop delete configmap absent'],
  ['-n shop delete pod lone --wait=false --grace-period=0 --force'],
  ['-n shop delete rig bench'],
  ['-n shop delete deployment,service --all --wait=false'],
  ['-n shop delete -f - --ignore-not-found --wait=false', WEB],
  ['delete crd rigs.lab.test --wait=false'],
  ['delete namespace shop --wait=false'],
];

function kubectl(file: string): Client {
  return {
    limit: 1000,
    run: (place) =>
      withDirectory(place, async (directory, kubeconfig) => {
        for (const [command, input] of COMMANDS) {
          const words = command.split(' ').map((word) => word.replaceAll(/(?<=\d|\*)_/g, ' '));
          await run(
            file,
            ['--kubeconfig', kubeconfig, '--cache-dir', join(directory, 'cache'), ...words],
            input,
            60_000,
          );
        }
      }),
  };
}

const clientNode: Client = {
  limit: 200,
  async run(place) {
    const config = new KubeConfig();
    config.loadFromString(kubeconfigOf(place));
    const api = config.makeApiClient(CoreV1Api);
    const namespace = 'default';
    const seen: string[] = [];
    const informer = makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`, () =>
      api.listNamespacedConfigMap({ namespace }),
    );
    for (const verb of ['add', 'update', 'delete'] as const)
      informer.on(verb, (map) => seen.push(`${verb} ${map.metadata?.name}`));
    await informer.start();
    const has = async (event: string): Promise<void> => {
      for (let attempt = 0; attempt < 400 && !seen.includes(event); attempt++)
        await new Promise((resolve) => setTimeout(resolve, 50));
    };
    for (const name of ['one', 'two'])
      await api.createNamespacedConfigMap({
        namespace,
        body: { metadata: { name, labels: { n: name } }, data: { a: '1' } },
      });
    await has('add two');
    const one = await api.readNamespacedConfigMap({ namespace, name: 'one' });
    await api.replaceNamespacedConfigMap({ namespace, name: 'one', body: { ...one, data: { a: '2' } } });
    await has('update one');
    await api
      .replaceNamespacedConfigMap({ namespace, name: 'one', body: { ...one, data: { a: '3' } } })
      .catch(() => {});
    await api.patchNamespacedConfigMap({
      namespace,
      name: 'two',
      body: [{ op: 'replace', path: '/data/a', value: '9' }],
    });
    await api.listNamespacedConfigMap({ namespace, labelSelector: 'n in (one,two)', limit: 1 });
    await api.deleteNamespacedConfigMap({ namespace, name: 'one' });
    await has('delete one');
    await api.deleteCollectionNamespacedConfigMap({ namespace });
    await has('delete two');
    await api.readNamespacedConfigMap({ namespace, name: 'one' }).catch(() => {});
    await informer.stop();
  },
};

/** Runs one of upstream's programs until the JSONPath `done` of the pods is not empty, or for at most 40 s. */
function upstream(name: string, flags: readonly string[], before: string, limit: number, done: string): Client {
  return {
    limit,
    run: (place) =>
      withDirectory(place, async (_, kubeconfig) => {
        const command = (...args: string[]) =>
          run('kubectl', ['--kubeconfig', place.server.kubeconfig, ...args], before);
        let child: ChildProcess | undefined;
        // The objects that the program processes are created through the proxy, so that the script is complete.
        const prepared = await run(
          'kubectl',
          ['--kubeconfig', kubeconfig, 'create', '--validate=false', '-f', '-'],
          before,
        );
        if (prepared.code !== 0) throw new Error(prepared.stderr);
        try {
          child = spawn(join(place.programs, name), [`--kubeconfig=${kubeconfig}`, ...flags], { stdio: 'ignore' });
          for (let second = 0; second < 40; second++) {
            await new Promise((resolve) => setTimeout(resolve, 1000));
            const { stdout } = await command('get', 'pods', '-n', 'default', '-o', `jsonpath=${done}`);
            if (stdout.trim() !== '') break;
          }
          await new Promise((resolve) => setTimeout(resolve, 3000));
        } finally {
          child?.kill('SIGTERM');
        }
      }),
  };
}

const READY_NODE = NODE.replace(
  'spec: {}',
  'spec: {}\nstatus: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True", reason: Fine, message: fine, lastHeartbeatTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}]}',
);
const POD =
  'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: default}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: placed, namespace: default}\nspec: {containers: [{name: c, image: busybox}]}';
const CONTROLLERS = 'deployment,replicaset,endpoint,endpointslice,serviceaccount,garbagecollector,namespace';

export const CLIENTS: Readonly<Record<string, Client>> = {
  'kubectl-1.20': kubectl('dist/test-tools/kubectl-1.20'),
  kubectl: kubectl('kubectl'),
  'client-node': clientNode,
  scheduler: upstream(
    'kube-scheduler',
    ['--leader-elect=true', '--port=0', '--secure-port=0'],
    `${READY_NODE}\n---\n${POD}`,
    200,
    '{.items[*].spec.nodeName}',
  ),
  controllers: upstream(
    'kube-controller-manager',
    [`--controllers=${CONTROLLERS}`, '--leader-elect=true', '--port=0', '--secure-port=0'],
    WEB.replaceAll('namespace: shop', 'namespace: default'),
    300,
    '{.items[1].metadata.name}',
  ),
};
