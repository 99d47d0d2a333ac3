// What a submission, or another priority, would do now, as the server tried it (POST /v1/forecast), in sentences.

import { duration, gpus, plural } from './format';
import type { Forecast } from './types';
import { causeWords } from './words';

const kPlaces = 4;

function placeWords(forecast: Forecast): string {
  const named = forecast.places.slice(0, kPlaces).map((place) => `${place.node} (${gpus(place.gpus)})`);
  const more = forecast.places.length - named.length;
  return named.join(', ') + (more > 0 ? ` and ${plural(more, 'more node')}` : '');
}

// The first sentence says whether it would start.
export function forecastWords(forecast: Forecast): string[] {
  const said: string[] = [];
  const borrowed = forecast.within === false ? ', borrowed: others may take it back' : '';
  if (forecast.started > 0 || forecast.phase === 'running') {
    const where = forecast.places.length > 0 ? ` on ${placeWords(forecast)}` : '';
    said.push(`It would start now${where}${forecast.within === true ? ', within the guarantee' : borrowed}.`);
  } else if (forecast.victims.length > 0 || forecast.victims_not_shown > 0) {
    said.push(`It would take the place of others, once they have left${borrowed}.`);
  } else {
    said.push('It would wait.');
  }
  if (forecast.victims_not_shown > 0)
    said.push(`${plural(forecast.victims_not_shown, 'job')} that you do not see would be stopped for it.`);
  return said;
}

// "research/nlp, of ann: 4 GPUs, 72 s of work lost: another queue reclaimed ..."
export function victimWords(victim: Forecast['victims'][number]): string {
  const lost = victim.unsaved_s > 0 ? `, ${duration(victim.unsaved_s)} of work since its last checkpoint` : '';
  return `${victim.queue}, of ${victim.user}: gives back ${gpus(victim.gpus)}${lost} (${causeWords(victim.cause)})`;
}
