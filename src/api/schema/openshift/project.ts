/** project.openshift.io/v1. Source: openshift/api project/v1 of release 4.10. */
import { declarePackage } from './declare.ts';

export const projectPackage = declarePackage('project.v1', {
  Project: {
    isKind: true,
    about: 'A project is a namespace as its users see it: lists hold the projects that the user may get.',
    fields: {
      spec: ['#ProjectSpec', 'Attributes of the namespace.'],
      status: ['#ProjectStatus', 'State of the namespace.'],
    },
  },
  ProjectSpec: {
    about: 'ProjectSpec holds the finalizers of the namespace.',
    fields: { finalizers: ['[]string', 'Finalizers that must complete before the project is deleted.'] },
  },
  ProjectStatus: {
    about: 'ProjectStatus is the state of the namespace.',
    fields: {
      phase: ['string', 'Active or Terminating.'],
      conditions: ['[]#core.NamespaceCondition', 'Conditions of the deletion of the project.'],
    },
  },
  ProjectRequest: {
    isRequest: true,
    about: 'ProjectRequest creates a project by the template of the cluster, with its requester as administrator.',
    fields: {
      displayName: ['string', 'Display name of the project.'],
      description: ['string', 'Description of the project.'],
    },
  },
});
