/** As samples.ts, of the kinds of OpenShift's groups; keys are those of sampleNameOf. */
export const OPENSHIFT_CONTENTS: Readonly<Record<string, object>> = {
  'Route.route.openshift.io': {
    spec: {
      host: 'shop.example.com',
      path: '/cart',
      to: { kind: 'Service', name: 'shop', weight: 80 },
      alternateBackends: [{ kind: 'Service', name: 'shop-next', weight: 20 }],
      port: { targetPort: 'http' },
      tls: { termination: 'edge', insecureEdgeTerminationPolicy: 'Redirect' },
    },
  },
  'Template.template.openshift.io': {
    message: 'done',
    objects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' } }],
    parameters: [
      { name: 'NAME', value: 'x', required: true },
      { name: 'PW', generate: 'expression', from: '[a-z]{8}' },
    ],
    labels: { app: 'x' },
  },
  'TemplateInstance.template.openshift.io': {
    spec: { template: { metadata: { name: 't' }, objects: [], parameters: [{ name: 'A' }] }, secret: { name: 's' } },
  },
  'BrokerTemplateInstance.template.openshift.io': {
    spec: { templateInstance: { name: 'i', namespace: 'n' }, secret: { name: 's', namespace: 'n' }, bindingIDs: ['b'] },
  },
  'Image.image.openshift.io': {
    metadata: { name: `sha256:${'a'.repeat(64)}` },
    dockerImageReference: `lab.local/app@sha256:${'a'.repeat(64)}`,
    dockerImageMetadata: { kind: 'DockerImage', apiVersion: '1.0' },
    dockerImageMetadataVersion: '1.0',
  },
  'ImageStream.image.openshift.io': {
    spec: {
      lookupPolicy: { local: true },
      tags: [{ name: '1', from: { kind: 'DockerImage', name: 'lab.local/app:1' }, importPolicy: {} }],
    },
  },
};
