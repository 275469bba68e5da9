mod build/php/shmlimit.so
mod debian/shmlimit.ini
