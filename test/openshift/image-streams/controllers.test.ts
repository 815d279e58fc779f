/** Scheduled imports, and workloads that follow tags, on a real API server. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { resources } from '../../../src/api/resources.ts';
import type { ImageStream } from '../../../src/openshift/image-streams/kinds/imagestreams/types.ts';
import { startServer, type TestServer } from '../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../controllers/harness.ts';

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

describe('image streams of registries', () => {
  let api: TestServer;
  let plane: ControlPlane;
  let latest = digest('a');
  const requested: string[] = [];
  before(async () => {
    api = await startServer({
      imageRegistries: {
        inspect: async (name) => {
          requested.push(name);
          const pullSpec = `registry.lab/app@${latest}`;
          return { digest: latest, pullSpec, configuration: {}, layers: [] };
        },
      },
    });
    plane = await startControlPlane({ api, kubelets: false, controllers: { scheduledImportMs: 300 } });
    await plane.of(resources.namespaces).create({ metadata: { name: 'shop' } });
  });
  after(async () => {
    await plane.stop();
    await api.stop();
  });

  const tag = (name: string, scheduled: boolean) => ({
    name,
    from: { kind: 'DockerImage', name: `registry.lab/app:${name}` },
    importPolicy: { scheduled },
  });
  const imageOf = async (name: string): Promise<string | undefined> => {
    const { status }: ImageStream = await plane.of(resources.imageStreams).get('app', 'shop');
    return status?.tags?.find((each) => each.tag === name)?.items?.[0]?.image;
  };

  it('imports only those tags of an image stream repeatedly that have a scheduled import policy', async () => {
    const stream: ImageStream = {
      metadata: { name: 'app', namespace: 'shop' },
      spec: { tags: [tag('moving', true), tag('fixed', false)] },
    };
    await plane.of(resources.imageStreams).create(stream);
    await eventually(async () => (await imageOf('fixed')) === digest('a'), 'the first import');
    const imports = (name: string): number => requested.filter((each) => each === `registry.lab/app:${name}`).length;
    await eventually(async () => imports('moving') > 3, 'imports by schedule');
    const before = imports('fixed');
    latest = digest('b');
    await eventually(async () => (await imageOf('moving')) === digest('b'), 'an import by schedule');
    assert.equal(await imageOf('fixed'), digest('a'));
    assert.equal(imports('fixed'), before);
  });

  it('updates the images of StatefulSets, DaemonSets and CronJobs with the annotation image.openshift.io/triggers', async () => {
    const annotations = (path: string) => ({
      'image.openshift.io/triggers': JSON.stringify([
        { from: { kind: 'ImageStreamTag', name: 'app:fixed' }, fieldPath: `${path}.containers[?(@.name=="c")].image` },
      ]),
    });
    const pod = { spec: { restartPolicy: 'Always', containers: [{ name: 'c', image: 'old' }] } };
    const template = { metadata: { labels: { app: 'x' } }, ...pod };
    const selector = { matchLabels: { app: 'x' } };
    const metadata = { name: 'x', namespace: 'shop', annotations: annotations('spec.template.spec') };
    await plane.of(resources.statefulSets).create({ metadata, spec: { serviceName: 'x', selector, template } });
    await plane.of(resources.daemonSets).create({ metadata, spec: { selector, template } });
    const jobPod = { spec: { ...pod.spec, restartPolicy: 'Never' } };
    await plane.of(resources.cronJobs).create({
      metadata: { ...metadata, annotations: annotations('spec.jobTemplate.spec.template.spec') },
      spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: { template: jobPod } } },
    });
    const wanted = `registry.lab/app@${digest('a')}`;
    await eventually(async () => {
      const set = await plane.of(resources.statefulSets).get('x', 'shop');
      assert.equal(set.spec?.template.spec?.containers[0]?.image, wanted);
      const daemons = await plane.of(resources.daemonSets).get('x', 'shop');
      assert.equal(daemons.spec?.template.spec?.containers[0]?.image, wanted);
      const job = await plane.of(resources.cronJobs).get('x', 'shop');
      assert.equal(job.spec?.jobTemplate.spec?.template.spec?.containers[0]?.image, wanted);
      return true;
    }, 'the image of the tag');
  });
});
