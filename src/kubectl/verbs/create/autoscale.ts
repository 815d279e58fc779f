/** `autoscale`: creates a horizontal pod autoscaler for a workload. Source: k8s.io/kubectl/pkg/cmd/autoscale. */
import { ClientError } from '../../core/errors.ts';
import { apiVersionOf } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import { currentObject, targetsOf } from '../../targets.ts';
import { createObject } from './create.ts';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags } = context;
    if (!flags.has('max')) throw new ClientError('required flag(s) "max" not set');
    const [minimum, maximum] = [flags.int('min'), flags.int('max')];
    if (maximum < 1) throw new ClientError(`--max=MAXPODS is required and must be at least 1, max: ${maximum}`);
    if (maximum < minimum)
      throw new ClientError(`--max=MAXPODS must be larger or equal to --min=MINPODS, max: ${maximum}, min: ${minimum}`);
    const metrics = [...metric('cpu', flags.text('cpu'), 'm'), ...metric('memory', flags.text('memory'), 'Mi')];
    for (const target of await targetsOf(session)) {
      const { resource } = target;
      await currentObject(session, target);
      if (!resource.subresources.includes('scale'))
        throw new ClientError(
          `cannot autoscale a ${resource.kind}: could not find scale subresource for ${resource.group}/${resource.version}, Resource=${resource.name} in discovery information`,
        );
      const namespace = target.namespace === undefined ? {} : { namespace: target.namespace };
      await createObject(
        session,
        {
          apiVersion: 'autoscaling/v2',
          kind: 'HorizontalPodAutoscaler',
          metadata: { name: flags.text('name') || target.name, ...namespace },
          spec: {
            maxReplicas: maximum,
            ...(metrics.length === 0 ? {} : { metrics }),
            ...(minimum > 0 ? { minReplicas: minimum } : {}),
            scaleTargetRef: { apiVersion: apiVersionOf(resource), kind: resource.kind, name: target.name },
          },
          status: { currentMetrics: null, desiredReplicas: 0 },
        },
        undefined,
        'autoscaled',
      );
    }
    return 0;
  });

/**
 * Metric for a target: `70%` is a share of the requests, `500m` is an amount. A number without a unit gets the default
 * unit of kubectl.
 */
function metric(name: string, text: string, unit: string): object[] {
  if (text === '') return [];
  const [, digits = '', suffix = ''] = /^(\d+(?:\.\d+)?)(%|[numkMGTPE]|[KMGTPE]i)?$/.exec(text) ?? [];
  if (digits === '') throw new ClientError(`invalid resource ${name} value: ${text}`);
  const target =
    suffix === '%'
      ? { averageUtilization: Number(digits), type: 'Utilization' }
      : { averageValue: `${digits}${suffix === '' ? unit : suffix}`, type: 'AverageValue' };
  return [{ resource: { name, target }, type: 'Resource' }];
}
